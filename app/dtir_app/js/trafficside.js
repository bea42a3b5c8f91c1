const {h, put, badge, live, keeping_focus, element} = window.dtir;

// The picked cell with the tasks behind it, then all pairs and sums as tables.
export function render({model, el}) {
  const send = (type, more = {}) => model.send_msg({type, ...more});
  const root = h('div', {class: 'trafficside-box'});
  const head = (names) => h('thead', {}, h('tr', {}, names.map((name) => h('th', {scope: 'col'}, name))));
  const enter = (event) => { if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); event.stopPropagation(); event.target.click(); } };
  live(model, (data) => {
    if (!data.pairs) { put(root); return; }
    const measured = data.sums.some((row) => row.measured_sent !== undefined);
    const chosen = (row) => data.picked && row.one === data.picked[0] && row.other === data.picked[1];
    keeping_focus(root, () => put(root,
      data.cell ? h('section', {class: 'cell-box', 'data-testid': 'traffic-cell'},
        h('div', {class: 'section-title'}, data.cell.title), h('p', {'data-testid': 'traffic-cell-detail'}, data.cell.detail),
        data.cell.tasks.length ? h('div', {class: 'cell-tasks'}, data.cell.tasks.map((task) => h('button', {type: 'button', class: 'line', 'data-testid': 'traffic-task', 'data-key': task.key, 'data-focus': `task-${task.key}`, onclick: () => send('select', {key: task.key})},
          badge(task.badge, Number(task.family)), h('span', {class: 'mono grow cut', title: task.text}, task.text), h('span', {class: 'number muted', title: 'planned'}, task.planned), task.measured ? h('span', {class: 'number', title: 'measured'}, task.measured) : null))) : h('p', {class: 'muted'}, 'No task sends here.'))
        : h('p', {class: 'muted hint'}, 'Click a cell to see the tasks behind it.'),
      h('div', {class: 'section-title'}, 'Pairs, most bytes first'),
      h('table', {class: 'table', role: 'grid', 'aria-label': 'Bytes by pair', 'data-testid': 'traffic-pairs'}, head(['from', 'to', 'planned', ...(measured ? ['measured', 'ratio'] : [])]),
        h('tbody', {onkeydown: enter}, data.pairs.map((row) => h('tr', {tabindex: 0, class: chosen(row) ? 'selected' : '', 'aria-selected': String(!!chosen(row)), 'data-testid': 'traffic-pair', 'data-focus': `pair-${row.one}-${row.other}`, onclick: () => send('traffic-cell', {one: row.one, other: row.other})},
          h('td', {class: 'number'}, row.from), h('td', {class: 'number'}, row.to), h('td', {class: 'number'}, row.planned), measured ? [h('td', {class: 'number'}, row.measured), h('td', {class: 'number'}, row.ratio)] : null)))),
      h('div', {class: 'section-title'}, `Sums by ${data.noun}`),
      h('table', {class: 'table', 'data-testid': 'traffic-sums-table'}, head([data.noun, 'sent', 'received', ...(measured ? ['measured sent'] : [])]),
        h('tbody', {}, data.sums.map((row) => h('tr', {}, h('td', {class: 'number'}, row.unit), h('td', {class: 'number'}, row.sent), h('td', {class: 'number'}, row.received), measured ? h('td', {class: 'number'}, row.measured_sent) : null))))));
  });
  return element(root, el);
}
