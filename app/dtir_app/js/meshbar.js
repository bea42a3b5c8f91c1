const {h, put, live, keeping_focus, element} = window.dtir;

export function render({model, el}) {
  const send = (type, more = {}) => model.send_msg({type, ...more});
  const root = h('div', {class: 'meshbar-box'});
  live(model, (data) => {
    if (!data.axes) { put(root); return; }
    keeping_focus(root, () => put(root, 
      h('div', {class: 'bar-row'}, h('span', {class: 'strong', 'data-testid': 'mesh-title'}, data.title), data.note ? h('span', {class: 'muted'}, data.note) : null,
        h('span', {class: 'right tools'}, data.selected ? null : [h('span', {class: 'muted'}, 'groups over'), data.axes.map((axis) => h('button', {type: 'button', class: `chip toggle mono${axis.grouped ? ' on' : ''}`, 'aria-pressed': String(axis.grouped),
          'data-testid': `mesh-group-${axis.name}`, 'data-focus': `group-${axis.name}`, onclick: () => send('mesh-group', {axis: axis.name})}, axis.name))])),
      h('div', {class: 'bar-row axes'}, data.axes.map((axis) => h('span', {class: 'axis-control'}, h('span', {class: 'mono strong'}, axis.name), h('span', {class: 'muted'}, axis.size),
        axis.fixed === null
          ? h('button', {type: 'button', class: 'chip toggle', title: 'Swap rows and columns for this axis', 'data-testid': `mesh-place-${axis.name}`, 'data-focus': `place-${axis.name}`, onclick: () => send('mesh-place', {axis: axis.name})}, axis.across ? '→ columns' : '↓ rows')
          : h('label', {class: 'slider'}, h('span', {class: 'muted'}, `at ${axis.fixed}`), h('input', {type: 'range', min: 0, max: axis.last, value: axis.fixed, 'data-testid': `mesh-at-${axis.name}`, 'data-focus': `at-${axis.name}`, onchange: (event) => send('mesh-at', {axis: axis.name, value: Number(event.target.value)})})))),
        data.limit ? h('span', {class: 'limit inline', role: 'status', 'data-testid': 'mesh-limit'}, data.limit) : null)));
  });
  return element(root, el);
}
