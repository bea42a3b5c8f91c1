const {h, put, icon, button, live, element} = window.dtir;

export function render({model, el}) {
  const send = (type, more = {}) => model.send_msg({type, ...more});
  const root = h('div', {class: 'gallery-box', 'data-testid': 'gallery'});
  const card = (item) => h('button', {type: 'button', class: `gallery-card${item.open ? ' open' : ''}`, 'data-testid': `program-${item.name}`, onclick: () => send('open-program', {key: item.key})},
    h('span', {class: 'gallery-title'}, item.title), h('span', {class: 'gallery-text'}, item.text), h('span', {class: 'gallery-meta mono'}, item.meta), item.open ? h('span', {class: 'chip on'}, 'open') : null);
  live(model, (data) => {
    const group = (title, items, note) => items?.length ? [h('h2', {}, title), note ? h('p', {class: 'muted', 'data-testid': 'folder-note'}, note) : null, h('div', {class: 'gallery-grid'}, items.map(card))] : null;
    put(root, 
      h('div', {class: 'gallery-head'}, h('h1', {}, 'Open a program'), h('p', {class: 'muted'}, data.lead ?? ''),
        data.busy ? h('p', {class: 'busy', role: 'status', 'data-testid': 'gallery-busy'}, h('span', {class: 'spinner', 'aria-hidden': 'true'}), data.busy) : null,
        data.closable ? button('Close', () => send('close-gallery'), {class: 'icon-button', 'data-testid': 'gallery-close'}, icon('close')) : null),
      ...[group('Opened here', data.files), group('Folder', data.folder, data.folder_note), group('Gallery', data.programs)].filter(Boolean).flat());
  });
  return element(root, el);
}
