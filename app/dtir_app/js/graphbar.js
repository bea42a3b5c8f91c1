const {h, put, shape, icon, button, live, keeping_focus, element} = window.dtir;

export function render({model, el}) {
  const send = (type, more = {}) => model.send_msg({type, ...more});
  const root = h('div', {class: 'graphbar-box'});
  live(model, (data) => {
    if (!data.crumbs) { put(root); return; }
    keeping_focus(root, () => put(root, 
      h('div', {class: 'bar-row'},
        h('nav', {'aria-label': 'Place', class: 'crumbs', 'data-testid': 'crumbs'}, data.crumbs.map((crumb, at) => [
          at ? h('span', {class: 'muted', 'aria-hidden': 'true'}, '›') : null,
          at === data.crumbs.length - 1 ? h('span', {class: 'crumb strong', 'aria-current': 'page', 'data-testid': 'crumb-here', title: crumb.text}, crumb.text)
            : button(crumb.text, () => send('leave', {depth: crumb.depth}), {class: 'link crumb', 'data-testid': 'crumb', 'data-focus': `crumb-${at}`}),
        ])),
        h('span', {class: 'right tools'},
          data.pages > 1 ? [
            button('Previous part', () => send('graph-page', {page: data.page - 1}), {class: 'icon-button small', disabled: data.page === 0, 'data-testid': 'graph-previous', 'data-focus': 'gp'}, icon('left')),
            h('span', {class: 'muted nowrap', 'data-testid': 'graph-page'}, `part ${data.page + 1} of ${data.pages}`),
            button('Next part', () => send('graph-page', {page: data.page + 1}), {class: 'icon-button small', disabled: data.page >= data.pages - 1, 'data-testid': 'graph-next', 'data-focus': 'gn'}, icon('right'))] : null,
          data.can_open ? button(data.can_open, () => send('open'), {class: 'button small', 'data-testid': 'graph-open', 'data-focus': 'open'}) : null,
          data.fold ? button(data.fold.label, () => send('fold', {folded: data.fold.folded}), {class: 'button small', 'data-testid': 'graph-fold', 'data-focus': 'fold'}) : null,
          button('Whole graph (0)', () => send('fit'), {class: 'icon-button small', 'data-testid': 'graph-fit', 'data-focus': 'fit'}, icon('fit')),
          button('Selected task (f)', () => send('focus'), {class: 'icon-button small', disabled: !data.selected, 'data-testid': 'graph-focus', 'data-focus': 'focus'}, icon('focus')))),
      h('div', {class: 'legend', role: 'group', 'aria-label': 'Kinds, click to filter', 'data-testid': 'legend'}, data.legend.map((item) => h('button', {
        type: 'button', class: `legend-item${item.on ? ' on' : ''}`, 'aria-pressed': String(!!item.on), disabled: item.family === 5 || !item.count, 'data-testid': `legend-${item.family}`, 'data-focus': `legend-${item.family}`,
        title: item.help, onclick: () => send('filter', {group: 'families', item: item.family}),
      }, shape(item.family), item.label, h('span', {class: 'muted'}, item.count)))),
      data.limit ? h('div', {class: 'limit', role: 'status', 'data-testid': 'graph-limit'}, h('span', {class: 'grow'}, data.limit)) : null));
  });
  return element(root, el);
}
