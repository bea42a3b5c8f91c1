const {h, put, badge, sign, button, live, keeping_focus, element} = window.dtir;

export function render({model, el}) {
  const send = (type, more = {}) => model.send_msg({type, ...more});
  const filters = h('div', {class: 'filters', 'data-testid': 'filters'});
  const tree = h('div', {class: 'tree', role: 'tree', 'aria-label': 'Outline', tabindex: 0, 'data-testid': 'outline'});
  const body = h('div', {class: 'tree-body'});
  tree.append(body);
  const root = h('div', {class: 'rail-box'}, h('div', {class: 'section-title'}, 'Outline'), tree, filters);
  const HEIGHT = 24;
  let rows = [], at = 0, data = {};

  // Only the rows in view are elements.
  const paint = () => {
    const first = Math.max(0, Math.floor(tree.scrollTop / HEIGHT) - 6);
    const last = Math.min(rows.length, first + Math.ceil(tree.clientHeight / HEIGHT) + 12);
    body.style.height = `${rows.length * HEIGHT}px`;
    put(body, ...rows.slice(first, last).map((row, offset) => row_element(row, first + offset)));
  };
  const row_element = (row, index) => h('div', {
    class: `tree-row ${row.what}${row.selected ? ' selected' : ''}${index === at ? ' current' : ''}`, role: 'treeitem', id: `tree-${index}`,
    'aria-level': row.depth + 1, 'aria-expanded': row.expanded === null ? undefined : String(row.expanded), 'aria-selected': String(!!row.selected),
    style: `top:${index * HEIGHT}px;padding-left:${6 + row.depth * 12}px`, 'data-testid': `outline-${row.what}`, 'data-key': row.select, title: row.label,
    onclick: (event) => { at = index; act(row, event.target.closest('.twist') !== null); },
    ondblclick: () => { if (row.scope >= 0) send('enter-scope', {scope: row.scope}); },
  },
    h('span', {class: 'twist', 'aria-hidden': 'true'}, row.expanded === null ? '' : row.expanded ? '▾' : '▸'),
    row.what === 'task' ? badge(row.code, row.family) : null,
    h('span', {class: `tree-label${row.what === 'task' ? ' mono' : ''}`}, row.label),
    row.note ? h('span', {class: 'tree-note'}, row.note) : null, sign(row.worst));
  const act = (row, twist) => {
    if (row.what === 'more') send('outline-more', {key: row.select, way: row.way});
    else if (row.select && !twist) send('select', {key: row.select});
    else if (row.expanded !== null) send('outline-toggle', {key: row.key});
    else if (row.select) send('select', {key: row.select});
  };
  const move = (index) => {
    at = Math.max(0, Math.min(rows.length - 1, index));
    if (at * HEIGHT < tree.scrollTop) tree.scrollTop = at * HEIGHT;
    if ((at + 1) * HEIGHT > tree.scrollTop + tree.clientHeight) tree.scrollTop = (at + 1) * HEIGHT - tree.clientHeight;
    paint();
    tree.setAttribute('aria-activedescendant', `tree-${at}`);
  };
  tree.addEventListener('scroll', paint);
  new ResizeObserver(paint).observe(tree);
  tree.addEventListener('keydown', (event) => {
    const row = rows[at];
    const keys = {
      ArrowDown: () => move(at + 1), ArrowUp: () => move(at - 1), Home: () => move(0), End: () => move(rows.length - 1),
      PageDown: () => move(at + 12), PageUp: () => move(at - 12),
      ArrowRight: () => row?.expanded === false ? send('outline-toggle', {key: row.key}) : move(at + 1),
      ArrowLeft: () => {
        if (row?.expanded) return send('outline-toggle', {key: row.key});
        for (let up = at - 1; up >= 0; up--) if (rows[up].depth < (row?.depth ?? 0)) return move(up);
      },
      Enter: () => row && act(row, false), ' ': () => row && act(row, false),
    };
    if (keys[event.key] && !event.ctrlKey && !event.metaKey && !event.altKey) { event.preventDefault(); event.stopPropagation(); keys[event.key](); }
  });

  const chip = (group, item) => h('button', {
    type: 'button', class: `chip toggle${item.on ? ' on' : ''}`, 'aria-pressed': String(!!item.on), 'data-focus': `${group}:${item.name}`,
    'data-testid': `filter-${group}-${item.name}`, onclick: () => send('filter', {group, item: item.name}),
  }, item.severity ? sign(item.severity) : item.family !== undefined ? badge(item.code, item.family) : null, item.label, item.count ? h('span', {class: 'muted'}, item.count) : null);
  const paint_filters = () => {
    const f = data.filters;
    if (!f) { put(filters); return; }
    const row = (title, items) => items.length ? h('div', {class: 'filter-row'}, h('div', {class: 'filter-title'}, title), h('div', {class: 'chips'}, items)) : null;
    put(filters, 
      h('div', {class: 'section-title'}, 'Filters',
        f.active ? button(`clear ${f.active}`, () => send('filter-clear'), {class: 'link', 'data-testid': 'filter-clear', 'data-focus': 'clear'}) : null,
        f.active ? h('span', {class: 'muted right', 'data-testid': 'filter-count'}, f.kept) : null),
      f.text ? h('div', {class: 'filter-row'}, h('div', {class: 'chips'}, h('button', {type: 'button', class: 'chip toggle on', 'data-testid': 'filter-text', onclick: () => send('filter', {group: 'text', item: ''})}, `search: ${f.text} ✕`))) : null,
      row('Kind', f.kinds.map((item) => chip('kinds', item))), row('Axis', f.axes.map((item) => chip('axes', item))),
      row('Finding', f.severities.map((item) => chip('severities', item))),
      f.bytes.length ? h('div', {class: 'filter-row'}, h('div', {class: 'filter-title'}, 'Message'),
        h('select', {class: 'select', 'data-testid': 'filter-bytes', 'aria-label': 'Least message size', 'data-focus': 'bytes', onchange: (event) => send('filter', {group: 'bytes', item: Number(event.target.value)})},
          f.bytes.map((item) => h('option', {value: item.value, selected: item.on}, item.label)))) : null);
  };
  live(model, (fresh) => {
    const scroll = fresh.reveal !== data.reveal;
    data = fresh;
    rows = fresh.rows ?? [];
    at = Math.min(at, Math.max(0, rows.length - 1));
    keeping_focus(filters, paint_filters);
    if (scroll) {
      const found = rows.findIndex((row) => row.selected);
      if (found >= 0) {
        at = found;
        const top = found * HEIGHT;
        if (top < tree.scrollTop || top + HEIGHT > tree.scrollTop + tree.clientHeight) tree.scrollTop = top - tree.clientHeight / 2;
      }
    }
    paint();
  });
  return element(root, el);
}
