// Shared helpers of the page's small elements, in the page once as `dtir`. Text always becomes text: nothing here parses markup.
window.dtir = (() => {

const h = (tag, props = {}, ...children) => {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === undefined || value === null || value === false) continue;
    if (name === 'class') made.className = value;
    else if (name === 'style') made.style.cssText = value;
    else if (name.startsWith('on')) made.addEventListener(name.slice(2), value);
    else made.setAttribute(name, value === true ? '' : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    made.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
  return made;
};

// Replace what an element holds; nested lists are flattened, gaps (null, false) left out.
const put = (root, ...children) => root.replaceChildren(
  ...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));

const svg = (tag, props = {}, ...children) => {
  const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(props)) if (value !== undefined) made.setAttribute(name, value);
  made.append(...children.flat().filter(Boolean));
  return made;
};

// Outlines of the kind families, as in the graph, so that a legend and a badge look like the thing.
const FAMILY_PATHS = {
  0: 'M1 2H23V14H1Z', 1: 'M1 8L5 2H19L23 8L19 14H5Z', 2: 'M1 2H19L23 8L19 14H1L5 8Z', 3: 'M12 0L24 8L12 16L0 8Z',
  4: 'M7 2H17A6 6 0 0 1 17 14H7A6 6 0 0 1 7 2Z', 5: 'M3 2H21L23 4V12L21 14H3L1 12V4Z',
};
const shape = (family) => svg('svg', {class: 'shape', viewBox: '-1 -1 26 18', width: 20, height: 14, 'aria-hidden': 'true'},
  svg('path', {d: FAMILY_PATHS[family] ?? FAMILY_PATHS[0], style: `fill:var(--family-${family});stroke:var(--strong-line)`}));

const badge = (code, family) => code
  ? h('span', {class: 'code', style: `background:var(--family-${family});color:var(--family-${family}-text)`}, code)
  : family >= 0 ? shape(family) : null;

const SEVERITY_PATHS = {
  error: 'M5 0H11L16 5V11L11 16H5L0 11V5Z', warning: 'M8 1L16 15H0Z', info: 'M8 0A8 8 0 1 1 8 16A8 8 0 1 1 8 0Z',
};
const SEVERITY_FILLS = {error: '#D55E00', warning: '#E69F00', info: '#56B4E9'};
const sign = (severity) => severity
  ? svg('svg', {class: 'sign', viewBox: '-1 -1 18 18', width: 13, height: 13, role: 'img', 'aria-label': severity},
    svg('path', {d: SEVERITY_PATHS[severity], fill: SEVERITY_FILLS[severity], stroke: 'var(--strong-line)'}),
    svg('path', {d: severity === 'info' ? 'M8 4V5M8 7.5V12' : 'M8 4.5V9.5M8 11.5V12.5', stroke: '#000', 'stroke-width': 2}))
  : null;

const ICONS = {
  search: 'M10.5 10.5L15 15M12 7A5 5 0 1 1 2 7A5 5 0 1 1 12 7Z',
  moon: 'M13 10A6 6 0 1 1 6.5 3A5 5 0 0 0 13 10Z',
  sun: 'M8 1V3M8 13V15M1 8H3M13 8H15M3 3L4.5 4.5M11.5 11.5L13 13M3 13L4.5 11.5M11.5 4.5L13 3M11 8A3 3 0 1 1 5 8A3 3 0 1 1 11 8Z',
  close: 'M3 3L13 13M13 3L3 13', up: 'M3 10L8 5L13 10', down: 'M3 6L8 11L13 6', left: 'M10 3L5 8L10 13', right: 'M6 3L11 8L6 13',
  fit: 'M2 6V2H6M10 2H14V6M14 10V14H10M6 14H2V10', focus: 'M8 1V5M8 11V15M1 8H5M11 8H15M11 8A3 3 0 1 1 5 8A3 3 0 1 1 11 8Z',
  box: 'M2 4V2H4M7 2H9M12 2H14V4M14 7V9M14 12V14H12M9 14H7M4 14H2V12M2 9V7M5 8H11M8 5V11',
  link: 'M6 10L10 6M7 4L9 2A3.5 3.5 0 0 1 14 7L12 9M9 12L7 14A3.5 3.5 0 0 1 2 9L4 7',
  open: 'M2 13V4H6L8 6H14V13Z', download: 'M8 2V10M4.5 7L8 10.5L11.5 7M2 13.5H14', copy: 'M5 5V2H14V11H11M2 5H11V14H2Z',
  question: 'M5.5 6A2.5 2.5 0 1 1 8 8.5V10M8 12.5V13.5', filter: 'M2 3H14L9.5 8.5V13L6.5 14V8.5Z',
};
const icon = (name) => svg('svg', {class: 'icon', viewBox: '0 0 16 16', width: 16, height: 16, 'aria-hidden': 'true', fill: 'none',
  stroke: 'currentColor', 'stroke-width': 1.6, 'stroke-linecap': 'round', 'stroke-linejoin': 'round'}, svg('path', {d: ICONS[name]}));

const button = (label, onclick, props = {}, ...children) =>
  h('button', {type: 'button', onclick, 'aria-label': children.length ? label : undefined, title: children.length ? label : undefined, ...props},
    children.length ? children : label);

// A press and its release are a click only where they meet the same node. So elements are not drawn anew while one of them is pressed.
const roots = new WeakSet(), waiting = new Set();
let pressed = false;
const released = () => {
  pressed = false;
  const drawings = [...waiting];
  waiting.clear();
  for (const redraw of drawings) redraw();
};
const in_element = (event) => event.composedPath().some((node) => roots.has(node));
window.addEventListener('pointerdown', (event) => { pressed = in_element(event); }, true);
for (const end of ['pointerup', 'pointercancel', 'dragend']) window.addEventListener(end, () => setTimeout(released), true);
window.addEventListener('blur', released);
window.addEventListener('click', () => { pressed = false; }, true);  // what was clicked is settled: what follows from it is drawn at once
window.addEventListener('pointermove', (event) => { if (pressed && event.buttons === 0) released(); }, true);

// Draw now and whenever the element's data change; drawing replaces everything unless `draw` keeps what it needs.
const live = (model, draw) => {
  const redraw = () => { if (pressed) waiting.add(redraw); else draw(model.payload ? JSON.parse(model.payload) : {}); };
  model.on('payload', redraw);
  redraw();
  model.send_msg({type: 'shown', size: (model.payload ?? '').length});
};

// Keep keyboard focus on the element with the same data-focus across a redraw.
const keeping_focus = (root, redraw) => {
  const active = root.getRootNode().activeElement;
  const name = active && root.contains(active) ? active.getAttribute('data-focus') : null;
  redraw();
  if (name) root.querySelector(`[data-focus="${CSS.escape(name)}"]`)?.focus({preventScroll: true});
};

// The root of an element, styled by the one style sheet that all elements share.
const sheet = new CSSStyleSheet();
sheet.replaceSync(document.getElementById('element-css')?.textContent ?? '');
const element = (root, holder) => {
  const tree = holder.getRootNode();
  roots.add(root);
  if (tree instanceof ShadowRoot) tree.adoptedStyleSheets = [...tree.adoptedStyleSheets, sheet];
  return root;
};

return {h, put, svg, shape, badge, sign, icon, button, live, keeping_focus, element};
})();
