const {h, put, button, live, keeping_focus, element} = window.dtir;

export function render({model, el}) {
  const send = (type, more = {}) => model.send_msg({type, ...more});
  const root = h('div', {class: 'memorybar-box'});
  document.addEventListener('dtir-memory', (event) => send('memory-tap', event.detail));
  live(model, (data) => {
    if (data.message) { put(root, h('div', {class: 'empty', 'data-testid': 'memory-empty'}, data.busy ? h('span', {class: 'busy', role: 'status'}, h('span', {class: 'spinner', 'aria-hidden': 'true'}), data.message) : data.message)); return; }
    if (!data.ranks) { put(root); return; }
    keeping_focus(root, () => put(root,
      h('div', {class: 'bar-row tight'},
        h('label', {class: 'pick'}, h('span', {class: 'side-tag'}, 'ranks'), h('select', {class: 'select', 'aria-label': 'Ranks whose memory is shown', 'data-testid': 'memory-class', 'data-focus': 'class', onchange: (event) => send('memory-class', {class: Number(event.target.value)})}, data.ranks.map((item) => h('option', {value: item.class, selected: item.on}, item.label)))),
        h('span', {class: 'sum', 'data-testid': 'memory-peak'}, h('span', {class: 'muted'}, 'peak'), h('b', {class: 'number'}, data.peak)),
        h('span', {class: 'sum'}, h('span', {class: 'muted'}, 'at'), data.at_key ? button(data.at, () => send('select', {key: data.at_key}), {class: 'link mono', 'data-testid': 'memory-at', 'data-focus': 'at'}) : data.at),
        h('span', {class: 'sum'}, h('span', {class: 'muted'}, 'inputs'), h('b', {class: 'number'}, data.inputs)),
        data.budgets.map((text) => h('span', {class: 'chip', 'data-testid': 'memory-budget'}, text))),
      h('div', {class: 'legend keys-row'}, data.legend.map((item) => h('span', {class: 'legend-key'}, h('span', {class: 'look', style: `background:${item.colour}`, 'aria-hidden': 'true'}), item.label)), h('span', {class: 'muted small-note'}, data.note)),
      data.over || data.leaks ? h('div', {class: 'limit', role: 'status', 'data-testid': 'memory-over'}, [data.over, data.leaks].filter(Boolean).join('; ')) : null,
      data.limit ? h('div', {class: 'limit', role: 'status', 'data-testid': 'memory-limit'}, data.limit) : null));
  });
  return element(root, el);
}
