const {h, put, live, keeping_focus, element} = window.dtir;

export function render({model, el}) {
  const send = (type, more = {}) => model.send_msg({type, ...more});
  const root = h('div', {class: 'tensorbar-box'});
  live(model, (data) => {
    document.documentElement.dataset.tensors = String(data.maps?.length ?? 0);
    if (!data.maps) { put(root, h('div', {class: 'empty', 'data-testid': 'tensor-empty'}, data.message ?? '')); return; }
    keeping_focus(root, () => put(root, data.maps.map((map) => h('div', {class: 'tensor-head', 'data-testid': `tensor-${map.side}`},
      h('div', {class: 'bar-row'}, h('span', {class: 'muted upper'}, map.side),
        map.options.length > 1 ? h('select', {class: 'select mono', 'aria-label': `${map.side}: which tensor`, 'data-testid': `tensor-pick-${map.side}`, 'data-focus': `pick-${map.side}`, onchange: (event) => send('tensor-pick', {side: map.side, value: Number(event.target.value)})}, map.options.map((item) => h('option', {value: item.value, selected: item.on}, item.label)))
          : h('span', {class: 'mono strong', 'data-testid': `tensor-name-${map.side}`}, map.name),
        h('span', {class: 'mono muted'}, map.type),
        h('span', {class: 'right tools'}, map.choices.length > 2 ? [['down', 0], ['across', 1]].map(([label, which]) => h('label', {class: 'pick'}, h('span', {class: 'muted'}, label), h('select', {class: 'select', 'data-testid': `tensor-dim-${map.side}-${label}`, 'data-focus': `dim-${map.side}-${label}`, onchange: (event) => send('tensor-dim', {side: map.side, which, dim: Number(event.target.value)})},
          map.choices.map((item) => h('option', {value: item.dim, selected: item.dim === map.dims[which]}, item.label))))) : h('span', {class: 'muted'}, map.choices.map((item) => item.label).join(' · ')))),
      h('div', {class: 'bar-row states'}, map.states.map((item) => h('span', {class: 'chip mono', 'data-testid': `tensor-state-${map.side}`}, h('b', {}, item.axis), ` ${item.state}`, item.inferred ? h('span', {class: 'inferred', title: `inferred: ${item.why}`, 'data-testid': `tensor-inferred-${map.side}`}, ` ≈ ${item.inferred} (inferred)`) : null)), map.badge ? h('span', {class: 'muted'}, map.badge) : null),
      map.sliders.length ? h('div', {class: 'bar-row'}, map.sliders.map((item) => h('label', {class: 'slider'}, h('span', {class: 'muted'}, `${item.label}, block ${item.value}`), h('input', {type: 'range', min: 0, max: item.max, value: item.value, 'data-testid': `tensor-at-${map.side}-${item.dim}`, 'data-focus': `at-${map.side}-${item.dim}`, onchange: (event) => send('tensor-at', {side: map.side, dim: item.dim, value: Number(event.target.value)})})))) : null,
      map.note ? h('div', {class: 'limit', role: 'status', 'data-testid': `tensor-note-${map.side}`}, map.note) : null,
      h('details', {class: 'twin'}, h('summary', {}, map.count), h('table', {class: 'table', 'data-testid': `tensor-blocks-${map.side}`}, h('thead', {}, h('tr', {}, h('th', {scope: 'col'}, 'block'), h('th', {scope: 'col'}, 'ranks'), h('th', {scope: 'col'}, 'held'))), h('tbody', {}, map.blocks.map((block) => h('tr', {}, block.map((text) => h('td', {class: 'mono'}, text)))))))))));
  });
  return element(root, el);
}
