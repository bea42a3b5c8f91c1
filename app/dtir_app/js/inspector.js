const {h, put, badge, sign, icon, button, live, element} = window.dtir;

export function render({model, el}) {
  const send = (type, more = {}) => model.send_msg({type, ...more});
  const root = h('div', {class: 'inspector-box', 'data-testid': 'inspector'});
  const copy = (text) => navigator.clipboard?.writeText(text).catch(() => 0);
  const link = (item) => item.key
    ? h('button', {type: 'button', class: 'item-link', 'data-testid': 'inspector-link', 'data-key': item.key, title: item.text, onclick: () => send('select', {key: item.key})},
      item.badge ? badge(item.badge, item.family) : null, h('span', {class: 'mono'}, item.text))
    : h('span', {class: 'mono muted'}, item.text);
  // Ranks of a task: the number, the colour of its group, and below how long it waited (hatched) and took.
  const hatches = {'/': 1, '\\': 2, x: 3, '.': 4, '+': 5};
  const strip = (section) => [
    h('ol', {class: 'rank-strip', 'data-testid': 'rank-strip'}, section.strip.map((cell) => h('li', {title: cell.text, 'aria-label': cell.text, 'data-rank': cell.rank, class: cell.colour === 'none' ? 'idle' : ''},
      h('span', {class: 'mono'}, cell.rank),
      h('span', {class: `rank-group hatch-${hatches[cell.hatch] ?? 0}`, style: cell.colour === 'none' ? '' : `background-color:var(--axis-${cell.colour})`}),
      cell.took === undefined ? null : h('span', {class: 'rank-time'}, h('span', {class: 'rank-wait', style: `width:${100 * cell.wait}%`}), h('span', {class: 'rank-took', style: `width:${100 * cell.took}%`}))))),
    section.strip_note ? h('p', {class: 'note'}, section.strip_note) : null];
  live(model, (data) => {
    if (!data.title) { put(root); return; }
    put(root, 
      h('header', {},
        h('div', {class: 'inspector-kind'}, badge(data.code, data.family), h('span', {class: 'muted'}, data.kind), data.badges.map((text) => h('span', {class: 'chip mono'}, text)),
          data.key ? h('span', {class: 'right'}, button('Copy the id', () => copy(data.key), {class: 'icon-button small'}, icon('copy')),
            button('Download this as JSON', () => send('export-selection', {format: 'json'}), {class: 'icon-button small', 'data-testid': 'selection-json'}, icon('download')), button('Download this as CSV', () => send('export-selection', {format: 'csv'}), {class: 'button small', 'data-testid': 'selection-csv'}, 'CSV'), button('Clear the selection (Esc)', () => send('clear'), {class: 'icon-button small', 'data-testid': 'inspector-clear'}, icon('close'))) : null),
        h('h2', {class: 'mono', 'data-testid': 'inspector-title', 'data-key': data.key}, data.title),
        h('p', {'data-testid': 'inspector-sentence'}, data.sentence),
        data.show ? h('div', {class: 'inspector-actions'}, data.show.map((item) => button(item.label, () => send('view', {view: item.view}), {class: 'button small', 'data-testid': `inspector-to-${item.view}`}))) : null,
        data.enter.map((item) => button(`open ${item.text}`, () => send('enter-scope', {scope: item.scope}), {class: 'button small', 'data-testid': 'inspector-enter'}))),
      data.sections.map((section) => h('section', section.why ? {'data-testid': 'inspector-why'} : {}, h('h3', {}, section.title), section.strip ? strip(section) : null, section.findings ? section.rows.map((row) => h('div', {class: 'finding', 'data-testid': 'inspector-finding'},
        h('div', {class: 'finding-code'}, sign(row.tone), row.label), h('div', {}, row.text), row.note ? h('div', {class: 'note'}, row.note) : null,
        row.at >= 0 ? button('Show picture', () => send('finding', {row: row.at, view: 'finding'}), {class: 'button small', 'data-testid': 'inspector-picture'}) : null)) : h('dl', {}, section.rows.map((row) => [
        h('dt', {class: row.tone ? `tone-${row.tone}` : ''}, row.label),
        h('dd', {class: row.mono ? 'mono' : ''}, row.links.length ? h('span', {class: 'links'}, row.links.map(link)) : null, row.text ? h('span', {class: row.tone ? `tone-${row.tone}` : ''}, row.text) : null, row.note ? h('span', {class: 'note'}, row.note) : null),
      ])))));
    root.scrollTop = 0;
  });
  return element(root, el);
}
