const {h, put, icon, button, live, keeping_focus, element} = window.dtir;

export function render({model, el}) {
  const send = (type, more = {}) => model.send_msg({type, ...more});
  const root = h('div', {class: 'timelinebar-box'});
  // The figure tells what it shows and where it was clicked; the server answers with another picture.
  document.addEventListener('dtir-timeline', (event) => {
    const {kind, ...more} = event.detail;
    send(`timeline-${kind}`, more);
  });
  const tool = (label, name, go, more = {}) => button(label, go, {class: 'icon-button small', 'data-focus': name, 'data-testid': `timeline-${name}`, ...more}, icon(more.icon ?? name));
  const key = (look, text, title) => h('span', {class: 'legend-key', title}, h('span', {class: `look ${look}`, 'aria-hidden': 'true'}), text);
  live(model, (data) => {
    if (data.message) { put(root, h('div', {class: 'empty', 'data-testid': 'timeline-empty'}, data.busy ? h('span', {class: 'busy', role: 'status'}, h('span', {class: 'spinner', 'aria-hidden': 'true'}), data.message) : data.message)); return; }
    if (!data.sums) { put(root); return; }
    keeping_focus(root, () => put(root,
      h('div', {class: 'bar-row tight'}, data.sums.map((item) => h('span', {class: 'sum', title: item.note, 'data-testid': `timeline-sum-${item.label.replaceAll(' ', '-')}`}, h('span', {class: 'muted'}, item.label), h('b', {class: 'number'}, item.value))),
        h('span', {class: 'right tools'},
          data.paired ? h('button', {type: 'button', class: `chip toggle${data.one_clock ? ' on' : ''}`, 'aria-pressed': String(data.one_clock), 'data-testid': 'timeline-clock', 'data-focus': 'clock', title: 'Both sides on one axis, or each on its own', onclick: () => send('timeline-clock', {one: !data.one_clock})}, 'one axis') : null,
          data.pages > 1 ? [tool('Rows before', 'before', () => send('timeline-page', {page: data.page - 1}), {icon: 'up', disabled: data.page === 0}), tool('Rows after', 'after', () => send('timeline-page', {page: data.page + 1}), {icon: 'down', disabled: data.page >= data.pages - 1})] : null,
          tool('Earlier', 'left', () => send('timeline-move', {way: 'left'})), tool('Later', 'right', () => send('timeline-move', {way: 'right'})),
          button('Zoom out', () => send('timeline-move', {way: 'out'}), {class: 'icon-button small strong', 'data-focus': 'out', 'data-testid': 'timeline-out'}, '−'),
          button('Zoom in', () => send('timeline-move', {way: 'in'}), {class: 'icon-button small strong', 'data-focus': 'in', 'data-testid': 'timeline-in'}, '+'),
          tool('Everything (0)', 'fit', () => send('timeline-fit')),
          tool('Selected task (f)', 'focus', () => send('timeline-focus'), {disabled: !data.selected}))),
      h('div', {class: 'legend keys-row', 'data-testid': 'timeline-legend'},
        data.families.map((item) => key(`fam-${item.family}`, item.label)),
        data.waits ? key('wait', 'waits for others', 'the rank has arrived, the last of its group has not') : null, key('exposed', 'exposed communication', 'communication while the rank computes nothing'),
        key('critical', 'critical path', 'what a faster step would have to shorten'), data.rounds ? key('rounds', 'further rounds of a loop') : null, data.columns ? key('column', 'many short bars: height = part of the time') : null,
        data.paired ? [key('halves', 'upper half planned, lower half measured'), key('blank', 'not measured')] : null),
      data.notice ? h('div', {class: 'limit', role: 'status', 'data-testid': 'timeline-notice'}, data.notice) : null,
      data.limit ? h('div', {class: 'limit', role: 'status', 'data-testid': 'timeline-limit'}, data.limit) : null));
  });
  return element(root, el);
}
