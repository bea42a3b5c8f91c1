const {h, put, sign, icon, button, live, keeping_focus, element} = window.dtir;

export function render({model, el}) {
  const send = (type, more = {}) => model.send_msg({type, ...more});
  const root = h('div', {class: 'drawer-box'});
  const head = h('div', {class: 'drawer-head'});
  const scroll = h('div', {class: 'table-scroll', 'data-testid': 'table-scroll'});
  root.append(head, scroll);
  let data = {};

  const cell = (column, text) => {
    if (column.look === 'severity') return h('td', {}, text ? h('span', {class: 'severity'}, sign(text), text) : '');
    return h('td', {class: column.look, title: text}, text);
  };
  const body_keys = (event) => {
    const row = event.target.closest('tr');
    const other = {ArrowDown: row?.nextElementSibling, ArrowUp: row?.previousElementSibling}[event.key];
    if (other) { event.preventDefault(); event.stopPropagation(); other.focus(); }
    if ((event.key === 'Enter' || event.key === ' ') && row) { event.preventDefault(); event.stopPropagation(); row.click(); }
  };
  const draw_head = () => put(head, 
    h('div', {role: 'tablist', 'aria-label': 'Tables', class: 'tablist'}, data.tabs.map((tab) => h('button', {
      type: 'button', role: 'tab', class: 'tab', 'aria-selected': String(tab.name === data.table), 'data-testid': `table-tab-${tab.name}`, 'data-focus': `tab-${tab.name}`,
      onclick: () => send('table', {table: tab.name}),
    }, tab.label, h('span', {class: 'count'}, tab.count)))),
    h('span', {class: 'muted wide', 'data-testid': 'table-count'}, data.note),
    h('span', {class: 'right tools'},
      data.pages > 1 ? [
        button('Previous page', () => send('page', {page: data.page - 1}), {class: 'icon-button small', disabled: data.page === 0, 'data-testid': 'page-previous', 'data-focus': 'previous'}, icon('left')),
        h('span', {class: 'muted nowrap', 'data-testid': 'page-number'}, `page ${data.page + 1} of ${data.pages}`),
        button('Next page', () => send('page', {page: data.page + 1}), {class: 'icon-button small', disabled: data.page >= data.pages - 1, 'data-testid': 'page-next', 'data-focus': 'next'}, icon('right')),
      ] : null,
      data.table === 'diagnostics' && data.selected >= 0 ? button('Show picture', () => send('finding', {row: data.selected, view: 'finding'}), {class: 'button small', 'data-testid': 'show-picture', 'data-focus': 'picture'}) : null,
      button('Download these rows as CSV', () => send('export', {format: 'csv'}), {class: 'button small', 'data-testid': 'export-csv', 'data-focus': 'csv'}, icon('download'), 'CSV'),
      button('Download these rows as JSON', () => send('export', {format: 'json'}), {class: 'button small', 'data-testid': 'export-json', 'data-focus': 'json'}, icon('download'), 'JSON'),
      button('Smaller or larger', () => document.dispatchEvent(new CustomEvent('dtir-drawer')), {class: 'icon-button small', 'data-testid': 'drawer-toggle', 'data-focus': 'toggle'}, icon('down'))));
  const draw_table = () => {
    if (!data.rows.length) { put(scroll, h('div', {class: 'empty', 'data-testid': 'table-empty'}, data.empty)); return; }
    const head_row = h('tr', {}, data.columns.map((column) => h('th', {
      scope: 'col', class: column.look, 'aria-sort': data.sort === column.key ? (data.descending ? 'descending' : 'ascending') : 'none', title: column.help || undefined,
    }, h('button', {type: 'button', class: 'sort', 'data-testid': `sort-${column.key}`, 'data-focus': `sort-${column.key}`, onclick: () => send('sort', {column: column.key})},
      column.label, h('span', {class: 'arrow', 'aria-hidden': 'true'}, data.sort === column.key ? (data.descending ? '▼' : '▲') : '')))));
    const rows = data.rows.map((row) => h('tr', {
      tabindex: 0, class: row.row === data.selected ? 'selected' : '', 'aria-selected': String(row.row === data.selected), 'data-testid': `row-${data.table}`, 'data-key': row.key, 'data-row': row.row,
      'data-focus': `row-${row.row}`, onclick: () => send('row', {row: row.row}), ondblclick: data.table === 'diagnostics' ? () => send('finding', {row: row.row, view: 'finding'}) : undefined,
    }, row.cells.map((text, at) => cell(data.columns[at], text))));
    const table = h('table', {class: `table ${data.table}`, role: 'grid', 'aria-label': data.table, 'aria-rowcount': data.total, 'data-testid': `table-${data.table}`}, h('thead', {}, head_row), h('tbody', {onkeydown: body_keys}, rows));
    put(scroll, table);
  };
  live(model, (fresh) => {
    const other = fresh.table !== data.table || fresh.page !== data.page || fresh.sort !== data.sort || fresh.descending !== data.descending;
    const only_selection = !other && JSON.stringify(fresh.rows) === JSON.stringify(data.rows);
    const moved = fresh.selected !== data.selected;
    data = fresh;
    if (!data.tabs) { put(head); put(scroll); return; }
    keeping_focus(root, () => {
      draw_head();
      if (only_selection) scroll.querySelectorAll('tbody tr').forEach((row) => {
        const on = Number(row.dataset.row) === data.selected;
        row.classList.toggle('selected', on);
        row.setAttribute('aria-selected', String(on));
      });
      else draw_table();
    });
    if (other && !moved) scroll.scrollTop = 0;
    if (moved || (other && data.selected >= 0)) {
      const row = scroll.querySelector('tr.selected');
      if (row) {
        const top = row.offsetTop, height = scroll.clientHeight;
        if (top - 30 < scroll.scrollTop || top + row.offsetHeight > scroll.scrollTop + height) scroll.scrollTop = top - height / 2;
      }
    }
  });
  return element(root, el);
}
