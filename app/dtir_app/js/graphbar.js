const {h, put, shape, icon, button, live, keeping_focus, element} = window.dtir;

export function render({model, el}) {
  const send = (type, more = {}) => model.send_msg({type, ...more});
  const root = h('div', {class: 'graphbar-box'});
  let data = {}, told = false, boxing = false;
  const tool = () => { for (const page of window.Bokeh?.documents ?? []) for (const found of page._all_models.values()) if (found.name === 'graph-box-zoom') return found; };
  const box_zoom = () => { const found = tool(); if (found) { found.active = boxing = !boxing; draw(); } };
  document.addEventListener('dtir-box-zoom', box_zoom);
  // One family of instances: which one is shown, the way to the others, and the switch between one and all.
  const family = (item) => h('span', {class: `family${item.folded ? '' : ' unfolded'}`, 'data-testid': 'family', 'data-key': item.key},
    h('span', {class: 'strong nowrap', title: `${item.size} each`}, item.label),
    item.folded ? [
      button(`Previous ${item.noun} (,)`, () => send('repeat-step', {key: item.key, step: -1}), {class: 'icon-button tiny', disabled: item.first, 'data-testid': 'repeat-previous', 'data-focus': `rp-${item.key}`}, icon('left')),
      h('input', {class: 'number', type: 'number', value: item.number, 'aria-label': `${item.noun} that is shown, ${item.position}`, 'data-testid': 'repeat-number', 'data-focus': `rn-${item.key}`, onchange: (event) => send('repeat-step', {key: item.key, number: Number(event.target.value)})}),
      h('span', {class: 'muted nowrap', 'data-testid': 'repeat-position'}, item.position),
      button(`Next ${item.noun} (.)`, () => send('repeat-step', {key: item.key, step: 1}), {class: 'icon-button tiny', disabled: item.last, 'data-testid': 'repeat-next', 'data-focus': `rx-${item.key}`}, icon('right'))] : null,
    item.note ? h('span', {class: 'differs', 'data-testid': 'repeat-note'}, item.note) : null,
    item.folded && item.different.length && !item.note ? h('select', {class: 'select', 'aria-label': 'Instances that differ', 'data-testid': 'repeat-different', 'data-focus': `rd-${item.key}`, onchange: (event) => event.target.value !== '' && send('repeat-step', {key: item.key, number: Number(event.target.value)})},
      h('option', {value: ''}, `${item.different.length + item.different_more} differ`), item.different.map((one) => h('option', {value: one.number}, one.text))) : null,
    button(item.folded ? 'unfold' : 'fold', () => send('repeat-fold', {key: item.key, folded: !item.folded}), {class: 'link', 'data-testid': 'repeat-fold', 'data-focus': `rf-${item.key}`}));
  const draw = () => {
    if (!data.crumbs) { put(root); return; }
    keeping_focus(root, () => put(root, 
      h('div', {class: 'bar-row'},
        h('nav', {'aria-label': 'Place', class: 'crumbs', 'data-testid': 'crumbs'}, data.crumbs.map((crumb, at) => [
          at ? h('span', {class: 'muted', 'aria-hidden': 'true'}, '›') : null,
          at === data.crumbs.length - 1 ? h('span', {class: 'crumb strong', 'aria-current': 'page', 'data-testid': 'crumb-here', title: crumb.text}, crumb.text)
            : button(crumb.text, () => send('leave', {depth: crumb.depth}), {class: 'link crumb', 'data-testid': 'crumb', 'data-focus': `crumb-${at}`}),
        ])),
        h('span', {class: 'right tools'},
          data.can_open ? button(data.can_open, () => send('open'), {class: 'button small', 'data-testid': 'graph-open', 'data-focus': 'open'}) : null,
          data.fold ? button(data.fold.label, () => send('fold', {folded: data.fold.folded}), {class: 'button small', 'data-testid': 'graph-fold', 'data-focus': 'fold'}) : null,
          button('Drag a box to zoom into (b)', box_zoom, {class: `icon-button small${boxing ? ' on' : ''}`, 'aria-pressed': String(boxing), 'data-testid': 'graph-box', 'data-focus': 'box'}, icon('box')),
          button('Whole graph (0)', () => send('fit'), {class: 'icon-button small', 'data-testid': 'graph-fit', 'data-focus': 'fit'}, icon('fit')),
          button('Selected task (f)', () => send('focus'), {class: 'icon-button small', disabled: !data.selected, 'data-testid': 'graph-focus', 'data-focus': 'focus'}, icon('focus')))),
      h('div', {class: 'legend', role: 'group', 'aria-label': 'Kinds, click to filter', 'data-testid': 'legend'}, data.legend.map((item) => h('button', {
        type: 'button', class: `legend-item${item.on ? ' on' : ''}`, 'aria-pressed': String(!!item.on), disabled: item.family === 5 || !item.count, 'data-testid': `legend-${item.family}`, 'data-focus': `legend-${item.family}`,
        title: item.help, onclick: () => send('filter', {group: 'families', item: item.family}),
      }, shape(item.family), item.label, h('span', {class: 'muted'}, item.count)))),
      data.families.length ? h('div', {class: 'families', role: 'group', 'aria-label': 'What repeats here', 'data-testid': 'families'}, data.families.map(family)) : null,
      data.limit ? h('div', {class: 'limit'}, h('span', {class: 'grow', role: 'status', 'data-testid': 'graph-limit'}, data.limit),
        data.can_unfold ? button('Unfold', () => send('unfold-all'), {class: 'link', title: 'Show every task for itself', 'data-testid': 'graph-unfold', 'data-focus': 'unfold'}) : null,
        data.why.length ? button(told ? 'Hide' : 'Why', () => { told = !told; draw(); }, {class: 'link', 'aria-expanded': String(told), 'data-testid': 'graph-why', 'data-focus': 'why'}) : null) : null,
      told && data.limit && data.why.length ? h('ul', {class: 'why', 'data-testid': 'graph-reasons'}, data.why.map((text) => h('li', {}, text))) : null));
  };
  live(model, (fresh) => { data = fresh; draw(); });
  return element(root, el);
}
