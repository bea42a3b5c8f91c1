const {h, put, icon, button, live, keeping_focus, element} = window.dtir;

// What differs between two programs: the list first, then the chosen difference in both.
export function render({model, el}) {
  const send = (type, more = {}) => model.send_msg({type, ...more});
  const root = h('div', {class: 'diff-box', 'data-testid': 'diff-panel'});
  const groups = {file: 'files', upload: 'dropped', folder: 'folder', gallery: 'gallery'};
  const chooser = (data) => h('label', {class: 'diff-with'}, h('span', {class: 'muted'}, 'compare with'),
    h('select', {class: 'select', 'data-testid': 'diff-with', 'data-focus': 'with', onchange: (event) => send('diff-with', {key: event.target.value})},
      h('option', {value: ''}, 'choose a program'),
      Object.entries(groups).map(([kind, label]) => { const own = data.programs.filter((item) => item.kind === kind); return own.length ? h('optgroup', {label}, own.map((item) => h('option', {value: item.key, selected: item.key === data.with}, item.name))) : null; })));
  const side = (label, item) => h('div', {class: 'diff-side'}, h('span', {class: 'muted'}, label), ' ', h('strong', {}, item.name), ' ', h('span', {class: 'chip mono'}, item.digest), ' ', h('span', {class: 'muted mono'}, item.mesh));
  const draw = (data) => {
    if (!data.programs) { put(root, h('div', {class: 'empty'}, data.message ?? '')); return; }
    if (!data.rows) {
      put(root, h('div', {class: 'diff-head'}, chooser(data)), data.busy ? h('div', {class: 'busy', role: 'status', 'data-testid': 'diff-busy'}, h('span', {class: 'spinner'}), data.busy) : h('div', {class: 'empty', 'data-testid': 'diff-message'}, data.message));
      return;
    }
    const keys = (event) => {
      const row = event.target.closest('tr'), other = {ArrowDown: row?.nextElementSibling, ArrowUp: row?.previousElementSibling}[event.key];
      if (other) { event.preventDefault(); event.stopPropagation(); other.focus(); }
      if ((event.key === 'Enter' || event.key === ' ') && row) { event.preventDefault(); event.stopPropagation(); row.click(); }
    };
    put(root,
      h('div', {class: 'diff-head'}, side('first', data.first), side('second', data.second), chooser(data),
        button('Open the other one', () => send('diff-swap'), {class: 'button small', 'data-testid': 'diff-swap', 'data-focus': 'swap'})),
      h('p', {class: 'diff-summary', 'data-testid': 'diff-summary'}, data.summary),
      h('div', {class: 'diff-facts'},
        data.matched.length ? h('span', {}, h('span', {class: 'muted'}, 'tasks matched '), data.matched.map((item) => h('span', {class: 'chip'}, `${item.label} `, h('strong', {}, item.count)))) : null,
        data.bytes.map((item) => h('span', {class: 'chip'}, h('span', {class: 'mono'}, item.kind), ` ${item.before} → ${item.after}`, h('span', {class: 'muted'}, ` ${item.change}`)))),
      h('div', {class: 'picture-choices'}, h('span', {class: 'segmented', role: 'group', 'aria-label': 'Which differences'}, data.kinds.map((item) => button(`${item.name} ${item.count}`, () => send('diff-kind', {name: item.name}), {class: 'chip toggle' + (item.chosen ? ' on' : ''), 'aria-pressed': String(item.chosen), 'data-testid': `diff-kind-${item.name}`, 'data-focus': `kind-${item.name}`})))),
      h('div', {class: 'diff-scroll'}, h('table', {class: 'table', role: 'grid', 'aria-label': 'Differences', 'data-testid': 'diff-table'},
        h('thead', {}, h('tr', {}, ['', 'what', 'name', 'field', 'first', 'second', 'found'].map((text) => h('th', {scope: 'col'}, text)))),
        h('tbody', {onkeydown: keys}, data.rows.map((row) => h('tr', {tabindex: 0, class: row.row === data.row ? 'selected' : '', 'aria-selected': String(row.row === data.row), 'data-testid': 'diff-row', 'data-focus': `row-${row.row}`,
          onclick: () => send('diff-row', {row: row.row, key: row.key})},
        h('td', {class: `diff-sign ${{'+': 'fact-good', '−': 'fact-bad'}[row.sign] ?? ''}`}, h('span', {'aria-label': {'+': 'added', '−': 'removed', '≠': 'changed'}[row.sign]}, row.sign)),
        h('td', {}, row.kind && row.what === 'task' ? row.kind.replaceAll('_', ' ') : row.what), h('td', {class: 'mono'}, row.name), h('td', {}, row.field), h('td', {class: 'mono'}, row.before), h('td', {class: 'mono'}, row.after), h('td', {class: 'muted'}, row.match)))))),
      data.more ? h('div', {class: 'muted'}, data.more, ' ', button('show more', () => send('diff-more'), {class: 'link', 'data-testid': 'diff-more', 'data-focus': 'more'})) : null,
      data.pictures ? h('div', {class: 'diff-pictures', 'data-testid': 'diff-pictures'}, data.pictures.map((item) => h('section', {},
        h('h3', {}, item.label), h('p', {class: 'mono picture-says'}, item.picture.says),
        item.picture.marks.length ? h('div', {class: 'picture-scroll'}, draw_picture(item.picture, (type, more) => item.label === 'before' ? send(type, more) : send('diff-swap', more))) : h('div', {class: 'empty'}, 'not there'),
        item.key ? button(item.label === 'before' ? 'Select it' : 'Show it in the other program', () => (item.label === 'before' ? send('select', {key: item.key}) : send('diff-swap', {key: item.key})), {class: 'button small', 'data-testid': `diff-jump-${item.label}`, 'data-focus': `jump-${item.label}`}) : null))) : null);
  };
  live(model, (data) => keeping_focus(root, () => draw(data)));
  return element(root, el);
}
