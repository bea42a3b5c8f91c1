const {h, put, svg, badge, sign, button, live, element} = window.dtir;

export function render({model, el}) {
  const send = (type, more = {}) => model.send_msg({type, ...more});
  const root = h('div', {class: 'overview-box', 'data-testid': 'overview'});
  const card = (title, props, ...children) => h('section', {class: 'card', ...props}, h('h2', {}, title), children);
  const bar = (share, family) => h('span', {class: 'bar', 'aria-hidden': 'true'}, h('span', {style: `width:${Math.max(share > 0 ? 1.5 : 0, share * 100)}%;background:var(--family-${family})`}));
  const line = (props, ...children) => h('button', {type: 'button', class: 'line', ...props}, children);

  const strip = (data) => {
    if (!data.bins.length) return null;
    const W = 1000, H = 64, step = W / data.count, max = Math.max(...data.bins.map((bin) => bin.total)) || 1;
    // Square root: a large exchange must not hide the small ones.
    const scale = (value) => Math.sqrt(value / max) * (H - 4);
    const drawn = svg('svg', {viewBox: `0 0 ${W} ${H}`, preserveAspectRatio: 'none', class: 'strip', role: 'group', 'aria-label': 'Communication along the program'});
    for (const bin of data.bins) {
      const total = scale(bin.total) || 2;
      let top = H;
      const group = svg('g', {class: 'bin', tabindex: 0, role: 'button', 'aria-label': bin.label, 'data-testid': 'strip-bin'});
      group.append(svg('title', {}));
      group.firstChild.textContent = bin.label;
      group.append(svg('rect', {x: bin.bin * step, y: 0, width: step, height: H, fill: 'transparent'}));
      for (const [, family, value] of bin.parts) {
        const height = bin.total ? total * value / bin.total : 2;
        top -= height;
        group.append(svg('rect', {x: bin.bin * step + step * 0.12, y: top, width: step * 0.76, height, style: `fill:var(--family-${family})`}));
      }
      const go = () => send('select', {key: bin.key, view: 'graph'});
      group.addEventListener('click', go);
      group.addEventListener('keydown', (event) => { if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); event.stopPropagation(); go(); } });
      drawn.append(group);
    }
    return drawn;
  };

  live(model, (data) => {
    if (!data.facts) { put(root, h('div', {class: 'empty'}, data.message || '')); return; }
    const worst = data.worst;
    put(root, 
      h('div', {class: 'facts'}, data.facts.map((fact) => h('div', {class: 'fact'}, h('div', {class: 'fact-label'}, fact.label),
        h('div', {class: `fact-value${fact.value.length > 9 ? ' long' : ''}`, 'data-testid': `fact-${fact.label.toLowerCase().replaceAll(' ', '-')}`}, fact.value), h('div', {class: 'fact-note', title: fact.note}, fact.note)))),
      h('div', {class: 'cards'},
        card(worst.severity === 'error' || worst.severity === 'warning' ? 'Worst finding' : 'Findings', {'data-testid': 'card-worst', class: `card wide-card sev-${worst.severity ?? 'clean'}`},
          worst.severity
            ? [line({class: 'line worst', onclick: () => send('finding', {row: worst.row, view: 'graph'}), 'data-testid': 'worst-show'}, sign(worst.severity),
                h('span', {class: 'grow'}, h('span', {class: 'mono strong'}, worst.code), h('span', {class: 'muted'}, ` ${worst.place}`), h('span', {class: 'block'}, worst.message), worst.hint ? h('span', {class: 'block muted'}, worst.hint) : null)),
              h('div', {class: 'muted'}, worst.summary, ' ', button('its picture', () => send('finding', {row: worst.row, view: 'finding'}), {class: 'link', 'data-testid': 'worst-picture'}), ' · ', button('all diagnostics', () => send('table', {table: 'diagnostics'}), {class: 'link'}))]
            : h('div', {class: 'calm'}, '✓ ', worst.summary)),
        card('Heaviest communication', {'data-testid': 'card-heaviest', class: 'card wide-card'},
          data.heaviest.length ? data.heaviest.map((item, at) => line({onclick: () => send('select', {key: item.key, view: 'graph'}), 'data-testid': at ? 'heavy-show' : 'heaviest-show'},
            badge(item.code, item.family), h('span', {class: 'mono grow cut', title: item.name}, item.name), h('span', {class: 'mono muted'}, item.axis), h('span', {class: 'muted nowrap'}, item.groups),
            h('span', {class: 'number strong'}, item.total), h('span', {class: 'muted number'}, item.runs === '1' ? '' : `${item.message} ×${item.runs}`)))
            : h('div', {class: 'calm'}, 'No communication: every task is local.')),
        data.strip.bins.length ? card('Where in the program', {class: 'card full-card', 'data-testid': 'card-strip'},
          h('div', {class: 'muted'}, 'message × runs along the task list, height by square root; tallest ', data.strip.max), strip(data.strip),
          h('div', {class: 'strip-ends muted'}, h('span', {}, 'first task'), h('span', {}, 'last task'))) : null,
        card('Communication by kind', {'data-testid': 'card-kinds-bytes'}, data.communication.length ? data.communication.map((item) =>
          line({onclick: () => send('show-kind', {kind: item.name}), 'data-testid': `comm-${item.name}`}, badge(item.code, item.family), h('span', {class: 'grow'}, item.label),
            h('span', {class: 'number muted'}, item.count), bar(item.share, item.family), h('span', {class: 'number', title: item.note}, item.bytes))) : h('div', {class: 'calm'}, 'none')),
        card('Bytes by mesh axis', {'data-testid': 'card-axes'}, data.axes.length ? data.axes.map((item) =>
          line({onclick: () => send('show-axes', {axes: item.axes}), 'data-testid': `axis-${item.name}`}, h('span', {class: 'mono grow'}, item.label), h('span', {class: 'number muted'}, item.count),
            bar(item.share, 1), h('span', {class: 'number', title: item.note}, item.bytes))) : h('div', {class: 'calm'}, 'none')),
        card('Tasks by kind', {'data-testid': 'card-kinds'}, data.kinds.map((item) =>
          line({onclick: () => send('show-kind', {kind: item.kind}), 'data-testid': `kind-${item.kind}`}, badge(item.code, item.family), h('span', {class: 'grow'}, item.label),
            bar(item.share, item.family), h('span', {class: 'number'}, item.count)))),
        data.regions.length ? card('Regions', {'data-testid': 'card-regions'}, data.regions.map((item) =>
          line({onclick: () => send('enter-scope', {scope: item.scope}), 'data-testid': 'region-show'}, h('span', {class: 'mono grow cut', title: item.name}, item.name),
            h('span', {class: 'muted nowrap'}, `${item.tasks} tasks · ${item.communication} comm`), h('span', {class: 'number strong'}, `×${item.runs}`)))) : null));
  });
  return element(root, el);
}
