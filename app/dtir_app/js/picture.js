// Draws a picture of `dtir_app.cues.marks` as SVG. Joined in front of the scripts of the elements that show pictures.
const picture_colour = (tone, fallback = 'none') => ({
  plain: 'var(--paper)', raised: 'var(--raised)', good: 'var(--ok)', bad: '#D55E00', warn: '#E69F00', muted: 'var(--edge)', accent: 'var(--accent)',
  text: 'var(--text)', none: 'none',
})[tone] ?? (/^(axis|family)-\d$/.test(tone ?? '') ? `var(--${tone})` : fallback);
const picture_ink = (tone) => /^on-axis-\d$/.test(tone ?? '') ? `var(--${tone.slice(3)}-text)` : ({good: 'var(--ok)', bad: 'var(--error)', warn: 'var(--warning)', muted: 'var(--muted)', accent: 'var(--accent)'})[tone] ?? 'var(--text)';

// Parallel lines across a box: 0 rising, 1 falling, 2 level, 3 upright.
const picture_hatch = (x, y, w, h, turn, step = 7) => {
  const parts = [];
  if (turn === 2) for (let at = y + step / 2; at < y + h; at += step) parts.push(`M${x} ${at}H${x + w}`);
  else if (turn === 3) for (let at = x + step / 2; at < x + w; at += step) parts.push(`M${at} ${y}V${y + h}`);
  else for (let at = step / 2; at < w + h; at += step) {
    const x0 = Math.max(0, at - h), x1 = Math.min(w, at), y0 = at - x0, y1 = at - x1;
    parts.push(turn === 1 ? `M${x + w - x0} ${y + y0}L${x + w - x1} ${y + y1}` : `M${x + x0} ${y + y0}L${x + x1} ${y + y1}`);
  }
  return parts.join('');
};

const picture_shapes = {
  0: (x, y, w, h) => `M${x} ${y}H${x + w}V${y + h}H${x}Z`,
  1: (x, y, w, h) => `M${x} ${y + h / 2}L${x + 9} ${y}H${x + w - 9}L${x + w} ${y + h / 2}L${x + w - 9} ${y + h}H${x + 9}Z`,
  2: (x, y, w, h) => `M${x} ${y}H${x + w - 9}L${x + w} ${y + h / 2}L${x + w - 9} ${y + h}H${x}L${x + 9} ${y + h / 2}Z`,
  3: (x, y, w, h) => `M${x} ${y + h / 2}L${x + 14} ${y}H${x + w - 14}L${x + w} ${y + h / 2}L${x + w - 14} ${y + h}H${x + 14}Z`,
  4: (x, y, w, h) => `M${x + h / 2} ${y}H${x + w - h / 2}A${h / 2} ${h / 2} 0 0 1 ${x + w - h / 2} ${y + h}H${x + h / 2}A${h / 2} ${h / 2} 0 0 1 ${x + h / 2} ${y}Z`,
  5: (x, y, w, h) => `M${x + 5} ${y}H${x + w - 5}L${x + w} ${y + 5}V${y + h - 5}L${x + w - 5} ${y + h}H${x + 5}L${x} ${y + h - 5}V${y + 5}Z`,
};

const picture_cut = (text, most, size, mono) => {
  const room = most ? Math.floor(most / ((mono ? 7.25 : 6.7) * size / 12)) : Infinity;
  return text.length <= room ? text : `${text.slice(0, Math.max(1, room - 1))}…`;
};

const picture_title = (made, text) => {
  if (text) { const title = window.dtir.svg('title'); title.textContent = text; made.prepend(title); }
  return made;
};

const picture_text = (x, y, text, {anchor = 'start', tone = 'text', size = 12, bold, mono, most, fill} = {}) => {
  const made = window.dtir.svg('text', {x, y, 'text-anchor': anchor, 'dominant-baseline': 'central', 'font-size': size, 'font-weight': bold ? 650 : undefined, class: mono ? 'p-mono' : 'p-text', style: `fill:${fill ?? picture_ink(tone)}`});
  const shown = picture_cut(text, most, size, mono);
  made.append(document.createTextNode(shown));
  return shown === text ? made : picture_title(made, text);
};

const picture_marks = {
  rect: (m) => {
    const {svg} = window.dtir;
    const group = svg('g', {class: 'p-rect'});
    group.append(svg('rect', {x: m.x, y: m.y, width: m.w, height: m.h, rx: m.round, 'stroke-width': m.thick ?? 1, 'stroke-dasharray': m.dashed ? '5 4' : undefined, style: `fill:${picture_colour(m.fill)};stroke:${picture_colour(m.stroke, 'var(--line)')}`}));
    if (m.hatch) group.append(svg('path', {d: picture_hatch(m.x, m.y, m.w, m.h, m.turn ?? 0), fill: 'none', 'stroke-width': 1.6, style: `stroke:${picture_colour(m.hatch)}`}));
    return group;
  },
  text: (m) => { const made = picture_text(m.x, m.y, m.text, m); if (m.tone === 'bad') made.classList.add('p-halo'); return made; },
  line: (m) => {
    const {svg} = window.dtir;
    const [first, ...rest] = m.points;
    const d = m.curve && m.points.length === 4 ? `M${first}C${rest.join(' ')}` : `M${first}${rest.map((point) => `L${point}`).join('')}`;
    const group = svg('g', {class: 'p-line'});
    const stroke = ['bad', 'warn', 'good'].includes(m.tone) ? picture_colour(m.tone) : picture_colour(m.tone, 'var(--edge)');
    group.append(svg('path', {d, fill: 'none', 'stroke-width': m.thick ?? 1.4, 'stroke-dasharray': m.dashed ? '5 4' : undefined, 'stroke-linejoin': 'round', style: `stroke:${stroke}`}));
    if (m.arrow) {
      const [x1, y1] = m.points.at(-1), [x0, y0] = m.points.at(-2);
      const length = Math.hypot(x1 - x0, y1 - y0) || 1, ux = (x1 - x0) / length, uy = (y1 - y0) / length, s = 5 + (m.thick ?? 1.4);
      group.append(svg('path', {d: `M${x1} ${y1}L${x1 - ux * s - uy * s * 0.55} ${y1 - uy * s + ux * s * 0.55}L${x1 - ux * s + uy * s * 0.55} ${y1 - uy * s - ux * s * 0.55}Z`, style: `fill:${stroke}`}));
    }
    return group;
  },
  badge: (m) => {
    const {svg} = window.dtir;
    const group = svg('g', {class: 'p-badge'});
    const axis = /^(axis|family)-\d$/.test(m.tone);
    const fill = m.strong || axis ? picture_colour(m.tone) : 'var(--paper)';
    group.append(svg('rect', {x: m.x - m.w / 2, y: m.y - 8.5, width: m.w, height: 17, rx: 4, style: `fill:${fill};stroke:${picture_colour(m.tone === 'raised' ? 'muted' : m.tone)}`}));
    group.append(picture_text(m.x, m.y, m.text, {anchor: 'middle', size: 11, bold: true, fill: axis ? `var(--${m.tone}-text)` : m.strong ? '#000' : picture_ink(m.tone)}));
    return group;
  },
  node: (m) => {
    const {svg} = window.dtir;
    const group = svg('g', {class: 'p-node'});
    if (m.faded) group.append(svg('path', {d: (picture_shapes[m.family] ?? picture_shapes[0])(m.x, m.y, m.w, m.h), style: 'fill:var(--paper)'}));
    const ink = m.ghost ? 'var(--text)' : m.faded ? 'var(--muted)' : `var(--family-${m.family}-text)`;
    group.append(svg('path', {'fill-opacity': m.faded ? 0.22 : undefined, d: (picture_shapes[m.family] ?? picture_shapes[0])(m.x, m.y, m.w, m.h), 'stroke-width': m.tone ? 3 : m.ghost ? 2 : 1.2, 'stroke-dasharray': m.ghost ? '5 4' : undefined,
      style: `fill:${m.ghost ? 'var(--paper)' : `var(--family-${m.family})`};stroke:${m.tone ? picture_colour(m.tone) : m.ghost ? 'var(--accent)' : 'var(--strong-line)'}`}));
    const middle = m.x + m.w / 2;
    group.append(picture_text(middle, m.y + m.h / 2 - (m.text ? 7 : 0), m.code ?? '', {anchor: 'middle', size: 12, bold: true, most: m.w - 16, fill: ink}));
    if (m.text) group.append(picture_text(middle, m.y + m.h / 2 + 8, m.text, {anchor: 'middle', size: 11, mono: true, most: m.w - 16, fill: ink}));
    return group;
  },
  dot: (m) => window.dtir.svg('circle', {cx: m.x, cy: m.y, r: m.r, style: `fill:${picture_colour(m.fill)};stroke:${picture_colour(m.stroke)}`}),
  crown: (m) => window.dtir.svg('path', {d: `M${m.x - 7} ${m.y + 5}L${m.x - 8} ${m.y - 5}L${m.x - 3} ${m.y}L${m.x} ${m.y - 7}L${m.x + 3} ${m.y}L${m.x + 8} ${m.y - 5}L${m.x + 7} ${m.y + 5}Z`, style: `fill:${picture_colour(m.tone)};stroke:var(--strong-line)`}),
};

const draw_picture = (picture, send) => {
  const {svg} = window.dtir;
  const {width, height} = picture;
  const root = svg('svg', {class: 'picture', viewBox: `-6 -5 ${width} ${height}`, role: 'group', 'aria-label': picture.says, 'data-testid': 'picture', 'data-cue': picture.cue, style: `width:min(100%, ${Math.round(width * 1.3)}px);min-width:${Math.round(Math.min(width, 2400) * 0.86)}px`});
  for (const m of picture.marks) {
    const made = picture_title(picture_marks[m.t](m), m.says ?? m.note);
    if (m.faded && m.t !== 'node') made.setAttribute('opacity', '0.45');
    if (m.key) {
      made.setAttribute('role', 'button');
      made.setAttribute('tabindex', '0');
      made.setAttribute('aria-label', [m.code, m.text, m.says].filter(Boolean).join(' '));
      made.setAttribute('data-testid', 'picture-mark');
      made.setAttribute('class', `${made.getAttribute('class') ?? ''} p-link`);
      const go = () => send('select', {key: m.key});
      made.addEventListener('click', go);
      made.addEventListener('keydown', (event) => { if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); event.stopPropagation(); go(); } });
    }
    root.append(made);
  }
  return root;
};

const draw_legend = (picture) => {
  const {h, svg} = window.dtir;
  const sample = ([kind, tone]) => svg('svg', {width: 22, height: 14, 'aria-hidden': 'true'},
    kind === 'line' || kind === 'dashed' ? svg('path', {d: 'M1 7H21', 'stroke-width': 2.4, 'stroke-dasharray': kind === 'dashed' ? '5 3' : undefined, style: `stroke:${picture_colour(tone)}`})
      : [svg('rect', {x: 1, y: 1, width: 20, height: 12, style: `fill:${kind === 'box' ? picture_colour(tone) : 'var(--paper)'};stroke:var(--strong-line)`}),
        kind === 'hatch' ? svg('path', {d: picture_hatch(1, 1, 20, 12, 0, 5), 'stroke-width': 1.4, style: `stroke:${picture_colour(tone)}`}) : null]);
  return picture.legend.length ? h('div', {class: 'picture-legend'}, picture.legend.map((item) => h('span', {}, sample(item), item[2]))) : null;
};

const draw_facts = (picture, send) => {
  const {h} = window.dtir;
  return picture.facts.length ? h('dl', {class: 'picture-facts', 'data-testid': 'picture-facts'}, picture.facts.map((fact) => [
    h('dt', {class: fact.tone ? `fact-${fact.tone}` : ''}, fact.key ? h('button', {type: 'button', class: 'link mono', onclick: () => send('select', {key: fact.key})}, fact.label) : fact.label),
    h('dd', {class: fact.tone ? `fact-${fact.tone}` : ''}, fact.text),
  ])) : null;
};
