const {h, put, live, keeping_focus, element} = window.dtir;

export function render({model, el}) {
  const send = (type, more = {}) => model.send_msg({type, ...more});
  const root = h('div', {class: 'trafficside-box'});
  const enter = (event) => { if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); event.stopPropagation(); event.target.click(); } };
  live(model, (data) => {
    if (!data.rows) { put(root); return; }
    keeping_focus(root, () => put(root,
      h('div', {class: 'section-title', 'data-testid': 'memory-title'}, data.title),
      h('table', {class: 'table left', role: 'grid', 'aria-label': 'Values that are live at the peak', 'data-testid': 'memory-values'},
        h('thead', {}, h('tr', {}, ['value', 'bytes', 'role', 'until'].map((name) => h('th', {scope: 'col'}, name)))),
        h('tbody', {onkeydown: enter}, data.rows.map((row) => h('tr', {tabindex: 0, class: row.value === data.picked ? 'selected' : '', 'aria-selected': String(row.value === data.picked), 'data-testid': 'memory-value', 'data-focus': `value-${row.value}`, title: `from ${row.from} until ${row.until}`, onclick: () => send('select', {key: row.key})},
          h('td', {class: 'mono'}, row.text), h('td', {class: 'number'}, row.size), h('td', {}, row.role), h('td', {class: row.leak ? 'tone-error' : 'mono'}, row.until))))),
      data.more ? h('p', {class: 'muted'}, data.more) : null));
  });
  return element(root, el);
}
