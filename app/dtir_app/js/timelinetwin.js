const {h, put, live, keeping_focus, element} = window.dtir;

// The bars of the window as a table: the same for those who see no canvas, and a way to select by keyboard.
export function render({model, el}) {
  const send = (type, more = {}) => model.send_msg({type, ...more});
  const root = h('div', {class: 'twin-box'});
  const columns = [['rank', 'Rank'], ['side', 'Side'], ['stream', 'Stream'], ['name', 'Task'], ['start', 'Start'], ['seconds', 'Lasts'], ['wait', 'Waited']];
  const keys = (event) => {
    const row = event.target.closest('tr');
    const other = {ArrowDown: row?.nextElementSibling, ArrowUp: row?.previousElementSibling}[event.key];
    if (other) { event.preventDefault(); event.stopPropagation(); other.focus(); }
    if ((event.key === 'Enter' || event.key === ' ') && row) { event.preventDefault(); event.stopPropagation(); row.click(); }
  };
  live(model, (data) => {
    if (!data.count) { put(root); return; }
    keeping_focus(root, () => put(root, h('div', {class: 'twin'},
      h('button', {type: 'button', class: 'link', 'aria-expanded': String(data.open), 'data-testid': 'timeline-twin', 'data-focus': 'twin', onclick: () => send('timeline-twin', {open: !data.open})}, `${data.open ? '▾' : '▸'} ${data.count}`),
      data.open ? h('div', {class: 'twin-scroll'}, h('table', {class: 'table', role: 'grid', 'aria-label': 'Bars of the timeline', 'data-testid': 'timeline-bars-table'},
        h('thead', {}, h('tr', {}, columns.map(([, label]) => h('th', {scope: 'col'}, label)))),
        h('tbody', {onkeydown: keys}, data.rows.map((row, at) => h('tr', {tabindex: at ? -1 : 0, class: row.key === `node:${data.selected}` ? 'selected' : '', 'aria-selected': String(row.key === `node:${data.selected}`), 'data-testid': 'timeline-bar-row', 'data-key': row.key, 'data-focus': `bar-${at}`, onclick: () => send('select', {key: row.key})},
          columns.map(([name]) => h('td', {class: ['start', 'seconds', 'wait'].includes(name) ? 'number' : name === 'name' ? 'mono' : ''}, row[name])))))),
        data.more ? h('div', {class: 'muted'}, data.more) : null) : null)));
  });
  return element(root, el);
}
