const {h, put, shape, badge, live, keeping_focus, element} = window.dtir;

// The picture's twin in elements: the selected task between the tasks it waits for and the tasks that wait for it.
export function render({model, el}) {
  const send = (type, more = {}) => model.send_msg({type, ...more});
  const root = h('div', {class: 'graphfoot-box', role: 'group', 'aria-label': 'Neighbours of the selected task', 'data-testid': 'neighbours'});
  const item = (link, side, at) => link.key ? h('button', {type: 'button', class: 'item-link', 'data-testid': `neighbour-${side}`, 'data-focus': `${side}-${at}`, 'data-key': link.key, title: link.text, onclick: () => send('select', {key: link.key})},
    link.badge ? badge(link.badge, link.family) : shape(link.family), h('span', {class: 'mono'}, link.text)) : h('span', {class: 'muted'}, link.text);
  live(model, (data) => {
    const pins = data.pinned?.length ? h('span', {class: 'pins', role: 'group', 'aria-label': 'Pinned tasks', 'data-testid': 'pinned'}, h('span', {class: 'muted'}, 'pinned'), data.pinned.map((link, at) => item(link, 'pinned', at)),
      h('button', {type: 'button', class: 'link', 'data-testid': 'unpin', 'data-focus': 'unpin', onclick: () => send('unpin')}, 'let go')) : null;
    if (!data.title) { put(root, h('span', {class: 'muted'}, data.message ?? ''), pins); return; }
    keeping_focus(root, () => put(root, 
      h('span', {class: 'muted'}, '←'), h('span', {class: 'side'}, data.before.length ? data.before.map((link, at) => item(link, 'before', at)) : h('span', {class: 'muted'}, 'inputs only')),
      h('span', {class: 'here mono', 'data-testid': 'neighbour-here'}, badge(data.code, data.family), data.title),
      h('span', {class: 'muted'}, '→'), h('span', {class: 'side'}, data.after.length ? data.after.map((link, at) => item(link, 'after', at)) : h('span', {class: 'muted'}, 'nothing here waits for it')), pins));
  });
  return element(root, el);
}
