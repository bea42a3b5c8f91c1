const {h, put, live, keeping_focus, element} = window.dtir;

export function render({model, el}) {
  const send = (type, more = {}) => model.send_msg({type, ...more});
  const root = h('div', {class: 'trafficbar-box'});
  document.addEventListener('dtir-traffic', (event) => send('traffic-cell', event.detail));
  live(model, (data) => {
    if (!data.modes) { put(root); return; }
    keeping_focus(root, () => put(root,
      h('div', {class: 'bar-row tight'},
        h('span', {class: 'segmented', role: 'group', 'aria-label': 'What the square shows'}, data.modes.map((item) => h('button', {type: 'button', class: `chip toggle${item.on ? ' on' : ''}`, 'aria-pressed': String(item.on), 'data-testid': `traffic-mode-${item.name}`, 'data-focus': `mode-${item.name}`, onclick: () => send('traffic-mode', {mode: item.name})}, item.name))),
        h('span', {class: 'sum', 'data-testid': 'traffic-total'}, h('span', {class: 'muted'}, 'in all'), h('b', {class: 'number'}, data.total)),
        data.selected || data.only ? h('button', {type: 'button', class: `chip toggle${data.only ? ' on' : ''}`, 'aria-pressed': String(data.only), 'data-testid': 'traffic-only', 'data-focus': 'only', title: 'Only what the selected task sends', onclick: () => send('traffic-only', {on: !data.only})}, data.selected ? `only ${data.selected.slice(0, 40)}` : 'only the selected task') : null,
        h('span', {class: 'ramp right', 'data-testid': 'traffic-scale', 'aria-label': 'Scale'}, data.scale.map((item) => h('span', {class: 'ramp-step'}, h('span', {class: 'ramp-colour', style: `background:${item.colour}`}), item.text)))),
      h('div', {class: 'bar-row tight muted small-text'}, data.note),
      data.problem ? h('div', {class: 'limit', role: 'status', 'data-testid': 'traffic-problem'}, data.problem) : null,
      data.limit ? h('div', {class: 'limit', role: 'status', 'data-testid': 'traffic-limit'}, data.limit) : null));
  });
  return element(root, el);
}
