const {h, put, icon, button, live, element} = window.dtir;

export function render({model, el}) {
  const root = h('div', {class: 'meshside-box'});
  live(model, (data) => {
    if (!data.groups) { put(root); return; }
    const copied = h('span', {class: 'muted', role: 'status'});
    const copy = () => { copied.textContent = 'copied'; navigator.clipboard?.writeText(data.text).catch(() => { copied.textContent = 'select and copy by hand'; }); };
    put(root, 
      h('div', {class: 'section-title'}, data.heading, h('span', {class: 'right'}, copied, button('Copy the groups as text', copy, {class: 'icon-button small', 'data-testid': 'mesh-copy'}, icon('copy')))),
      h('ul', {class: 'groups', 'data-testid': 'mesh-groups'}, data.groups.map((group) => h('li', {'data-testid': 'mesh-group'},
        h('span', {class: `swatch hatch-${({'/': 1, '\\': 2, x: 3, '.': 4, '+': 5})[group.hatch] ?? 0}`, style: `background-color:var(--axis-${group.colour})`, 'aria-hidden': 'true'}), h('span', {class: 'group-text'}, h('span', {class: 'block'}, group.name), h('span', {class: 'mono block muted'}, group.members)))),
        data.more ? h('li', {class: 'muted'}, data.more) : null));
  });
  return element(root, el);
}
