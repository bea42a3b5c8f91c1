const {h, put, live, keeping_focus, element} = window.dtir;

// The rows beside the figure, as high as its own: both share the height that the axis leaves, up to the same limit.
export function render({model, el}) {
  const send = (type, more = {}) => model.send_msg({type, ...more});
  const root = h('div', {class: 'lanes-box', role: 'list', 'aria-label': 'Rows of the timeline'});
  live(model, (data) => {
    if (!data.rows) { put(root); return; }
    const small = data.rows.length > 7;
    keeping_focus(root, () => put(root,
      h('div', {class: 'lanes-axis', style: `height:${data.band}px`}, data.axes.map((text) => h('div', {class: 'muted'}, text))),
      data.rows.map((row) => h('div', {class: `lanes-row${row.inner ? ' inner' : ''}${small ? ' small' : ''}`, role: 'listitem', style: `flex-basis:${data.row}px;max-height:${data.row}px`, 'data-testid': 'timeline-row', 'data-key': row.key},
        h('div', {class: 'lanes-name'},
          row.opened === null ? null : h('button', {type: 'button', class: 'twist-button', 'aria-expanded': String(row.opened), 'aria-label': `${row.opened ? 'Fold' : 'Show the ranks of'} ${row.label}`, 'data-testid': `timeline-open-${row.key}`, 'data-focus': row.key, onclick: () => send('timeline-row', {key: row.key})}, row.opened ? '▾' : '▸'),
          h('span', {class: 'lanes-text'}, h('span', {class: 'block cut', title: `${row.label}: ${row.note}`}, small && row.opened !== null ? `${row.label.split(' ')[0]}: ${row.note}` : row.label), row.note && !small ? h('span', {class: 'block muted cut mono', title: row.note}, row.note) : null)),
        h('div', {class: 'lanes-streams muted', 'aria-hidden': 'true'}, h('span', {title: 'compute'}, small ? 'cp' : 'compute'), h('span', {title: 'communication'}, small ? 'cm' : 'comm'))))));
  });
  return element(root, el);
}
