// The page without a server: unpacks what was recorded, draws the explorer's own elements from it, and answers their messages as far
// as that can be done here. What cannot be done says so.
(async () => {
const {h, put} = window.dtir;
const page = document.documentElement;
const by_id = (name) => document.getElementById(name);
const fail = (text) => { put(document.querySelector('.loading'), text); };
if (!('DecompressionStream' in window)) { fail('This browser is too old for this file (it cannot unpack gzip).'); return; }
const packed = Uint8Array.from(atob(by_id('dtir-data').textContent.trim()), (letter) => letter.charCodeAt(0));
const DATA = JSON.parse(await new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'))).text());
const {tasks, tables} = DATA;
const LIVE = `dtir explore ${DATA.file}`;
const PAGE_ROWS = 100, HITS = 60;

const stored = (name, fallback) => { try { return localStorage.getItem(name) ?? fallback; } catch { return fallback; } };
const state = {view: 'overview', key: '', finding: -1, table: DATA.table, sort: '', descending: false, page: 0, query: '', kept: '', place: 0,
  families: new Set(), kinds: new Set(), axes: '', severities: new Set(), notice: null};
const say = (text) => { document.querySelector('[data-testid=announce]').textContent = text; };
page.dataset.theme = stored('dtir-theme', matchMedia('(prefers-color-scheme: dark)').matches ? 'dark' : 'light');
Object.assign(page.dataset, {view: 'overview', page: 'program', tensors: '2', drawer: 'open'});

// -- elements: the explorer's, each in a shadow root with the one style sheet
const models = {};
const model = (name) => models[name] ??= {
  payload: '', listeners: {},
  on(what, call) { (this.listeners[what] ??= []).push(call); },
  send_msg(message) { heard(message.type, message); },
  show(content) {
    const text = JSON.stringify(content);
    if (text === this.payload) return;
    this.payload = text;
    for (const call of this.listeners.payload ?? []) call();
  },
};
const mount = (name, place) => {
  const holder = h('div', {class: 'holder', 'data-element': name}), inner = h('div', {class: 'holder'});
  place.append(holder);
  holder.attachShadow({mode: 'open'}).append(inner);
  inner.append(window.dtir_renders[window.dtir_modules[name]]({model: model(name), el: inner}));
};

// -- figures: drawings that can be moved, zoomed and clicked
const NS = 'http://www.w3.org/2000/svg';
const figures = {};
const figure = (name) => figures[name] ??= (() => {
  const svg = document.createElementNS(NS, 'svg');
  svg.setAttribute('class', 'figure');
  svg.setAttribute('data-figure', name);
  svg.setAttribute('tabindex', '0');
  const empty = h('div', {class: 'nothing'}), host = h('div', {style: 'height:100%'}, svg, empty);
  const made = {host, svg, empty, number: -1, box: [0, 0, 1, 1], whole: [0, 0, 1, 1]};
  const put_box = (box) => { made.box = box; svg.setAttribute('viewBox', box.map((number) => number.toFixed(2)).join(' ')); };
  const zoom = (factor, fx = 0.5, fy = 0.5) => {
    const [x, y, w, hgt] = made.box, scale = Math.max(made.whole[2] / 200, Math.min(made.whole[2] * 3, w * factor)) / w;
    put_box([x + w * fx * (1 - scale), y + hgt * fy * (1 - scale), w * scale, hgt * scale]);
  };
  // Where a point of the screen lies in the drawing: the drawing keeps its proportions, so there may be room beside it.
  const at = (event) => { const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse()); return [point.x, point.y]; };
  svg.addEventListener('wheel', (event) => {
    event.preventDefault();
    const [x, y] = at(event);
    zoom(event.deltaY > 0 ? 1.2 : 1 / 1.2, (x - made.box[0]) / made.box[2], (y - made.box[1]) / made.box[3]);
  }, {passive: false});
  let grip = null;
  svg.addEventListener('pointerdown', (event) => { if (event.button === 0) grip = {x: event.clientX, y: event.clientY, box: made.box, moved: false}; });
  window.addEventListener('pointermove', (event) => {
    if (!grip) return;
    const dx = event.clientX - grip.x, dy = event.clientY - grip.y;
    if (Math.abs(dx) + Math.abs(dy) > 4) grip.moved = true;
    const scale = svg.getScreenCTM().a;
    if (grip.moved) put_box([grip.box[0] - dx / scale, grip.box[1] - dy / scale, grip.box[2], grip.box[3]]);
  });
  window.addEventListener('pointerup', () => { if (grip) { made.moved = grip.moved; grip = null; } });
  svg.addEventListener('click', (event) => {
    if (made.moved) return;
    const hit = event.target.closest?.('[data-task]');
    if (hit && !task_key(Number(hit.dataset.task))) tell(`That task is not in this file. ${LIVE} shows it.`);
    else if (hit) select(task_key(Number(hit.dataset.task)));
    else if (name === 'graph') select('');
  });
  svg.addEventListener('dblclick', (event) => { const hit = event.target.closest?.('[data-task]'); if (hit) { select(task_key(Number(hit.dataset.task))); enter(); } });
  svg.addEventListener('keydown', (event) => {
    const step = {'+': 1 / 1.3, '=': 1 / 1.3, '-': 1.3}[event.key], move = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]}[event.key];
    if (step) zoom(step);
    else if (move) put_box([made.box[0] + move[0] * made.box[2] * 0.1, made.box[1] + move[1] * made.box[3] * 0.1, made.box[2], made.box[3]]);
    else return;
    event.preventDefault();
    event.stopPropagation();
  });
  made.fit = () => {
    // A wide drawing in a small window: begin where it can be read, and not with all of it.
    put_box(made.whole);
  };
  made.reveal = (element) => {
    const spot = element.getBBox(), [x, y, w, hgt] = made.box;
    const inside = spot.x >= x && spot.x + spot.width <= x + w && spot.y >= y && spot.y + spot.height <= y + hgt;
    const scale = svg.getScreenCTM()?.a ?? 1;
    if (inside && spot.width * scale > 24) return;
    const wide = Math.min(made.whole[2], Math.max(svg.clientWidth, 300)), tall = wide * (svg.clientHeight || 300) / (svg.clientWidth || 300);
    put_box([spot.x + spot.width / 2 - wide / 2, spot.y + spot.height / 2 - tall / 2, wide, tall]);
  };
  made.show = (number, text = '') => {
    svg.style.display = number < 0 ? 'none' : '';
    empty.style.display = number < 0 ? '' : 'none';
    put(empty, text);
    if (number === made.number || number < 0) { made.number = number < 0 ? -1 : made.number; return false; }
    made.number = number;
    const drawn = DATA.pictures[number];
    const parsed = new DOMParser().parseFromString(`<svg xmlns="${NS}">${drawn.body}</svg>`, 'image/svg+xml');
    svg.replaceChildren(...[...parsed.documentElement.childNodes].map((node) => document.importNode(node, true)));
    made.whole = [0, 0, drawn.width, drawn.height];
    made.fit();
    return true;
  };
  return made;
})();

// -- what is where
const task_key = (index) => tasks.id[index] ? `node:${tasks.id[index]}` : '';
const index_of = new Map(tasks.id.map((id, index) => [`node:${id}`, index]));
const family = (index) => tasks.kinds[tasks.kind[index]][2];
const main = by_id('main');
const build = () => {
  mount('topbar', by_id('topbar'));
  mount('notice', by_id('notice'));
  mount('tabs', document.querySelector('.tabs'));
  mount('inspector', by_id('side'));
  mount('drawer', by_id('drawer'));
  for (const [view, rows] of Object.entries(DATA.rows)) {
    const section = h('section', {class: `view view-${view}`, 'aria-label': DATA.labels[view]});
    for (const row of rows) {
      const line = h('div', {class: `panel-row${row.grows ? ' grows' : ''}`});
      for (const [name, grows, label, width] of row.cells) {
        const cell = h('div', {class: grows ? 'fill' : 'fixed', style: width ? `width:${width}px` : undefined, ...(label ? {role: 'img', 'aria-label': label} : {})});
        if (DATA.figures.includes(name)) cell.append(figure(name).host); else mount(name, cell);
        line.append(cell);
      }
      section.append(line);
    }
    main.append(section);
  }
};

// -- search: words and a few conditions, as in the explorer
const UNITS = {'': 0, k: 1, m: 2, g: 3, t: 4, p: 5, e: 6};
const parse = (text) => {
  const tests = [];
  for (const token of text.match(/[^\s"]*"[^"]*"?|\S+/g) ?? []) {
    const found = /^([a-z]+)(>=|<=|[:=<>])(.*)$/i.exec(token);
    if (!found) { const word = token.replaceAll('"', '').toLowerCase(); tests.push((i) => text_of(i).includes(word)); continue; }
    const [, key, sign, said] = found, wanted = said.toLowerCase().replaceAll('"', '').split(',');
    if (key === 'kind') tests.push((i) => wanted.some((one) => { const [name, code, , label] = tasks.kinds[tasks.kind[i]]; return [name, code.toLowerCase(), label].includes(one) || (one === 'collective' && family(i) === 1); }));
    else if (key === 'axis') tests.push((i) => tasks.axes[i].split(' ').some((axis) => wanted.includes(axis.toLowerCase())));
    else if (key === 'severity') tests.push((i) => wanted.includes(tasks.severities[tasks.worst[i]]));
    else if (key === 'op') tests.push((i) => wanted.some((one) => tasks.operation[i].toLowerCase().includes(one)));
    else if (key === 'in') tests.push((i) => wanted.some((one) => tasks.path[i].toLowerCase().includes(one)));
    else if (key === 'bytes') {
      const size = /^(\d+(?:\.\d+)?)\s*([kmgtpe]?)i?b?$/.exec(said.toLowerCase());
      if (!size) return {problem: `${said} is no size`};
      const limit = Number(size[1]) * 1024 ** UNITS[size[2]];
      const compare = {'>': (a) => a > limit, '>=': (a) => a >= limit, '<': (a) => a < limit, '<=': (a) => a <= limit, ':': (a) => a === limit, '=': (a) => a === limit}[sign];
      tests.push((i) => tasks.bytes[i] !== null && compare(tasks.bytes[i]));
    } else return {problem: `${key}: is searched for in the explorer only (${LIVE})`};
  }
  return {tests};
};
const texts = new Map();
const text_of = (i) => { if (!texts.has(i)) texts.set(i, `${tasks.name[i]}\n${tasks.operation[i]}\n${tasks.path[i]}`.toLowerCase()); return texts.get(i); };
const matching = (text) => {
  const {tests, problem} = parse(text);
  if (problem) return {problem, found: []};
  return {found: tasks.id.map((_, i) => i).filter((i) => tests.every((test) => test(i)))};
};
const hits = () => {
  if (!state.query.trim()) return null;
  const {found, problem} = matching(state.query);
  return {text: state.query, problem: problem ?? '', total: found.length, count: `${found.length} ${found.length === 1 ? 'hit' : 'hits'}${found.length > HITS ? `, first ${HITS} listed` : ''}`,
    items: found.slice(0, HITS).map((i) => ({key: task_key(i), name: tasks.name[i], code: tasks.kinds[tasks.kind[i]][1], family: family(i), note: ''}))};
};
const filtered = () => Boolean(state.kept || state.families.size || state.kinds.size || state.axes || state.severities.size);
const keeps = () => {
  const found = state.kept ? new Set(matching(state.kept).found) : null;
  return (i) => (!found || found.has(i)) && (!state.families.size || state.families.has(family(i))) && (!state.kinds.size || state.kinds.has(tasks.kinds[tasks.kind[i]][0]))
    && (!state.axes || tasks.axes[i] === state.axes) && (!state.severities.size || state.severities.has(tasks.severities[tasks.worst[i]]));
};

// -- tables
const kept_rows = () => {
  const table = tables[state.table];
  let order = state.sort && table.orders[state.sort] ? [...table.orders[state.sort]] : table.rows.map((_, at) => at);
  if (state.descending) {
    const column = table.columns.findIndex((one) => one.key === state.sort), none = (at) => ['', '–', '?'].includes(table.rows[at][2][column]);
    order = [...order.filter((at) => !none(at)).reverse(), ...order.filter(none)];
  }
  if (!filtered()) return order;
  const keep = keeps(), word = state.kept.toLowerCase();
  return order.filter((at) => {
    const [key, , cells] = table.rows[at], index = index_of.get(key);
    if (state.table === 'diagnostics' && state.severities.size && !state.severities.has(cells[0])) return false;
    if (state.table === 'diagnostics' && state.severities.size && !state.kept) return true;
    return index !== undefined ? keep(index) : state.kept ? cells.some((cell) => cell.toLowerCase().includes(word)) : state.table !== 'tensors' || !filtered();
  });
};
const selected_row = () => {
  if (state.table === 'diagnostics') return state.finding;
  return tables[state.table].rows.find(([key]) => key === state.key)?.[1] ?? -1;
};
const drawer = () => {
  const table = tables[state.table], rows = kept_rows(), pages = Math.max(1, Math.ceil(rows.length / PAGE_ROWS));
  state.page = Math.max(0, Math.min(pages - 1, state.page));
  const left = table.rows.length < table.total ? `first ${table.rows.length.toLocaleString('en')} of ${table.count} rows are in this file` : '';
  const note = [filtered() ? `${rows.length.toLocaleString('en')} of ${table.rows.length.toLocaleString('en')} rows match` : '', left].filter(Boolean).join('; ');
  return {
    table: state.table, columns: table.columns, rows: rows.slice(state.page * PAGE_ROWS, (state.page + 1) * PAGE_ROWS).map((at) => { const [key, row, cells] = table.rows[at]; return {key, row, cells}; }),
    total: rows.length, all: table.total, page: state.page, pages, sort: state.sort, descending: state.descending,
    tabs: Object.entries(tables).map(([name, one]) => ({name, label: one.label, count: one.count})), selected: selected_row(), note,
    empty: filtered() ? 'No row matches. Empty the search box, or press Esc.' : 'There is nothing to list.',
  };
};

// -- drawing
const set_classes = () => {
  const graph = DATA.graphs[state.place], svg = figure('graph').svg, keep = filtered() ? keeps() : null;
  const owner = (index) => graph?.folded[index] ?? index;
  const index = index_of.get(state.key), foot = DATA.details[state.key]?.[1] ?? {};
  const near = new Set([...(foot.before ?? []), ...(foot.after ?? [])].map((link) => index_of.get(link.key)).filter((i) => i !== undefined).map(owner));
  let here = null;
  for (const node of svg.querySelectorAll('[data-task]')) {
    const task = Number(node.dataset.task), selected = index !== undefined && owner(index) === task && tasks.scope[index] === graph.scope;
    node.classList.toggle('selected', selected);
    node.classList.toggle('near', !selected && near.has(task));
    node.classList.toggle('faded', Boolean(keep) && !keep(task));
    if (selected) here = node;
  }
  return here;
};
const place_of = (index) => DATA.home[tasks.scope[index]] ?? -1;
const draw_view = () => {
  const view = state.view;
  if (view === 'graph') {
    const graph = DATA.graphs[state.place];
    if (graph) {
      const on = state.key ? index_of.get(state.key) : undefined;
      const legend = (graph.elements.graphbar.legend ?? []).map((item) => ({...item, on: state.families.has(item.family)}));
      models.graphbar.show({...graph.elements.graphbar, legend, fold: null, families: [], can_unfold: false, selected: on !== undefined, can_open: DATA.details[state.key]?.[0].enter?.length ? 'Open region' : ''});
      models.graphfoot.show(DATA.details[state.key]?.[1]?.title ? DATA.details[state.key][1] : {message: 'Click a task to select it; the wheel zooms, dragging moves.'});
      figure('graph').show(graph.figures.graph ?? -1, 'There are no tasks here.');
      const here = set_classes();
      if (here && state.reveal) figure('graph').reveal(here);
      state.reveal = false;
    }
    return;
  }
  const own = DATA.shown[state.key]?.[view], number = own ?? DATA.fixed[view], made = DATA.states[number];
  const left_out = state.key && own === undefined && Object.values(DATA.shown)[0]?.[view] !== undefined && view !== 'finding';
  for (const [name, content] of Object.entries(made.elements)) models[name]?.show(left_out ? {message: `The picture of this one is not in this file. ${LIVE} shows it.`} : content);
  for (const row of DATA.rows[view]) for (const [name] of row.cells) if (DATA.figures.includes(name)) {
    const index = index_of.get(state.key), had = made.figures[name];
    figure(name).show(left_out || had === undefined ? -1 : had, left_out ? 'The picture of this one is not in this file.' : 'Nothing is drawn here.');
    if (view !== 'mesh' && view !== 'tensor') for (const node of figure(name).svg.querySelectorAll('[data-task]')) node.classList.toggle('selected', Number(node.dataset.task) === index);
    if (view === 'tensor') figure(name).host.parentElement.style.display = !left_out && had === undefined && name !== 'tensor-before' ? 'none' : '';
  }
};
const draw = () => {
  models.tabs.show({tabs: DATA.tabs, view: state.view, page: 'program', busy: ''});
  models.topbar.show({...DATA.top, dark: page.dataset.theme === 'dark', hits: hits()});
  models.notice.show(state.notice ?? {});
  const known = DATA.details[state.key]?.[0], index = index_of.get(state.key);
  const others = [['graph', 'in graph'], ['mesh', 'ranks'], ['tensor', 'shard map']].filter(([view]) => view !== state.view).map(([view, label]) => ({view, label}));
  if (!state.key) models.inspector.show(DATA.program);
  else models.inspector.show(known ? {...known, show: others} : {title: index !== undefined ? tasks.name[index] : state.key, kind: '', code: '', family: -1, key: state.key, badges: [], sections: [], enter: [],
    sentence: `Its description is not in this file. ${LIVE} shows it.`});
  models.drawer.show(drawer());
  draw_view();
};
const tell = (text) => { state.notice = {tone: 'info', text}; draw(); };

// -- the address: a view and a selection behind #, so that back, forward and links work
const address = () => `#v=${state.view}${state.key ? `&s=${state.key}` : ''}`;
const write = () => { if (location.hash !== address()) location.hash = address(); };
const read = () => {
  const said = new URLSearchParams(location.hash.slice(1)), view = said.get('v'), key = said.get('s') ?? '';
  if (view && DATA.rows[view]) state.view = view;
  if (key !== state.key && /^(node|value):[0-9a-f]{32}$/.test(key || 'node:' + '0'.repeat(32))) { state.key = key; follow(); }
  draw();
};
const follow = () => {
  const index = index_of.get(state.key);
  if (index !== undefined && place_of(index) >= 0) state.place = place_of(index);
  const row = DATA.findings.indexOf(state.key);
  state.finding = state.key && DATA.findings[state.finding] !== state.key ? row : state.finding;
  state.reveal = true;
};
const select = (key, view) => {
  state.key = key;
  if (!key) state.finding = -1;
  if (view && DATA.rows[view]) state.view = view;
  follow();
  const at = key ? kept_rows().findIndex((one) => tables[state.table].rows[one][0] === key) : -1;
  if (at >= 0) state.page = Math.floor(at / PAGE_ROWS);
  draw();
  write();
  const index = index_of.get(key);
  say(key ? `Selected ${index !== undefined ? tasks.name[index] : DATA.details[key]?.[0].title ?? key}. ${DATA.details[key]?.[0].sentence ?? ''}` : 'Nothing is selected.');
};
const enter = () => { const target = DATA.details[state.key]?.[0].enter?.[0]; if (target) go_scope(target.scope); };
const go_scope = (scope) => {
  if ((DATA.home[scope] ?? -1) < 0) { tell(`The graph of that list of tasks is not in this file. ${LIVE} shows it.`); return; }
  Object.assign(state, {place: DATA.home[scope], view: 'graph'});
  draw();
  write();
};
const go_finding = (row, view) => {
  if (!(row >= 0 && row < DATA.findings.length)) return;
  Object.assign(state, {finding: row, table: 'diagnostics'});
  if (DATA.findings[row]) select(DATA.findings[row], view);
  else { state.key = ''; draw(); write(); }
};
const step_finding = (step) => { const count = DATA.findings.length; if (count) go_finding((Math.max(0, state.finding < 0 && step < 0 ? 0 : state.finding) + (state.finding < 0 && step > 0 ? 0 : step) + count) % count); };
const step_communication = (step) => {
  const keep = keeps(), all = tasks.id.map((_, i) => i).filter((i) => [1, 2, 3].includes(family(i)) && keep(i)), now = index_of.get(state.key) ?? -1;
  const next = step > 0 ? all.find((i) => i > now) ?? all[0] : all.findLast((i) => i < now) ?? all.at(-1);
  if (next !== undefined) select(task_key(next));
};

// -- files to take away
const download = (name, mime, text) => {
  const url = URL.createObjectURL(new Blob([text], {type: mime})), anchor = h('a', {href: url, download: name});
  document.body.append(anchor);
  anchor.click();
  anchor.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
};
const plain_name = `${DATA.name}`.replace(/[^A-Za-z0-9._-]/g, '-').slice(0, 60) || 'program';
const csv_cell = (cell) => { const text = /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell; return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text; };
const save_table = (how) => {
  const table = tables[state.table], rows = kept_rows().map((at) => table.rows[at]), names = table.columns.map((column) => column.key);
  if (how === 'json') download(`${plain_name}.${state.table}.json`, 'application/json', JSON.stringify({program: DATA.name, digest: DATA.digest, table: state.table, total: rows.length, rows: rows.map(([key, , cells]) => ({...Object.fromEntries(names.map((name, at) => [name, cells[at]])), id: key}))}, null, 1));
  else download(`${plain_name}.${state.table}.csv`, 'text/csv', [[...names, 'id'], ...rows.map(([key, , cells]) => [...cells, key])].map((row) => row.map(csv_cell).join(',')).join('\n') + '\n');
};
const save_selection = (how) => {
  const content = DATA.details[state.key]?.[0];
  if (!content) return;
  const pairs = content.sections.flatMap((section) => [...section.rows.map((row) => [section.title, row.label, row.text || row.links.map((link) => link.text).join(' '), row.note]),
    ...(section.strip ?? []).map((cell) => [section.title, `rank ${cell.rank}`, cell.text, ''])]);
  if (how === 'csv') download(`${plain_name}.selection.csv`, 'text/csv', [['section', 'label', 'text', 'note'], ...pairs].map((row) => row.map(csv_cell).join(',')).join('\n') + '\n');
  else download(`${plain_name}.selection.json`, 'application/json', JSON.stringify({program: DATA.name, digest: DATA.digest, ...content}, null, 1));
};

const toggle = (set, item) => { if (set.has(item)) set.delete(item); else set.add(item); };
const about = by_id('about');
const show_about = () => {
  put(about, h('h2', {}, 'About this file'),
    h('p', {}, `A picture of ${DATA.name} as dtir export wrote it. It loads nothing and sends nothing.`),
    h('p', {}, h('strong', {}, 'Works here: '), 'all views, selecting in pictures and tables, hovering, moving and zooming, search, legend filters, sorting, downloads, links (#), light and dark.'),
    h('p', {}, h('strong', {}, 'Needs the explorer: '), 'folding and opening blocks, other arrangements of mesh and tensors, switches of pictures, outline, running, comparing.'),
    h('p', {}, h('code', {}, LIVE)),
    DATA.note.length ? h('p', {}, h('strong', {}, 'Not all of the program is in it: '), `${DATA.note.join('; ')}.`) : null,
    h('dl', {}, [['/', 'search'], ['[ ]', 'previous, next finding'], ['c C', 'next, previous communication'], ['0 f', 'whole picture, selected task'], ['+ −', 'zoom the picture that has the focus'], ['Esc', 'close, clear']].map(([key, text]) => h('div', {}, h('kbd', {}, key), ` ${text}`))),
    h('button', {type: 'button', onclick: () => about.close()}, 'Close'));
  if (!about.open) about.showModal();
};
document.addEventListener('dtir-help', show_about);
const toggle_drawer = () => { page.dataset.drawer = page.dataset.drawer === 'closed' ? 'open' : 'closed'; };
document.addEventListener('dtir-drawer', toggle_drawer);
for (const opener of document.querySelectorAll('[data-pane]')) opener.addEventListener('click', () => { page.dataset.pane = page.dataset.pane === opener.dataset.pane ? '' : opener.dataset.pane; });

const clear = () => {
  if (state.notice) state.notice = null;
  else if (filtered()) Object.assign(state, {kept: '', families: new Set(), kinds: new Set(), axes: '', severities: new Set()});
  else { select(''); return; }
  draw();
};
const handlers = {
  select: ({key, view}) => select(key, view),
  clear,
  view: ({view}) => { if (DATA.rows[view]) { state.view = view; state.reveal = true; draw(); write(); } },
  theme: ({dark}) => { page.dataset.theme = dark ? 'dark' : 'light'; try { localStorage.setItem('dtir-theme', page.dataset.theme); } catch { /* private mode */ } draw(); },
  search: ({text}) => { state.query = text; if (!text) state.kept = ''; draw(); },
  keep: ({text}) => { Object.assign(state, {kept: text, page: 0}); draw(); },
  filter: ({group, item}) => { if (group === 'families') { toggle(state.families, item); draw(); } else unknown(); },
  'filter-clear': () => { Object.assign(state, {kept: '', families: new Set(), kinds: new Set(), axes: '', severities: new Set()}); draw(); },
  'show-kind': ({kind}) => { Object.assign(state, {table: 'collectives', kinds: new Set([kind]), page: 0}); draw(); },
  'show-axes': ({axes}) => { Object.assign(state, {table: 'collectives', axes: (axes ?? []).join(' '), page: 0}); draw(); },
  findings: ({severity}) => { Object.assign(state, {table: 'diagnostics', severities: new Set(severity ? [severity] : []), page: 0}); draw(); },
  finding: ({row, view}) => go_finding(row, view),
  row: ({row}) => { if (state.table === 'diagnostics') go_finding(row); else select(tables[state.table].rows.find((one) => one[1] === row)?.[0] ?? ''); },
  table: ({table}) => { Object.assign(state, {table, sort: '', descending: false, page: 0}); draw(); },
  sort: ({column}) => { if (state.sort === column) state.descending = !state.descending; else Object.assign(state, {sort: column, descending: false}); state.page = 0; draw(); },
  page: ({page: number}) => { state.page = number; draw(); },
  export: ({format}) => save_table(format),
  'export-selection': ({format}) => save_selection(format),
  'enter-scope': ({scope}) => go_scope(scope),
  open: enter,
  leave: ({depth}) => { const graph = DATA.graphs[state.place]; const crumb = graph?.elements.graphbar.crumbs?.[depth]; const target = DATA.graphs.findIndex((one) => one.elements.graphbar.crumbs?.length === depth + 1 && one.elements.graphbar.crumbs[depth].text === crumb?.text); if (target >= 0) { state.place = target; draw(); } },
  fit: () => figure('graph').fit(),
  focus: () => { const here = set_classes(); if (here) { figure('graph').box = [0, 0, 0, 0]; figure('graph').reveal(here); } },
  dismiss: () => { state.notice = null; draw(); },
  gallery: () => tell(`This file holds one program. ${LIVE} opens others.`),
  'copy-link': () => navigator.clipboard?.writeText(location.href).then(() => say('Link copied')).catch(() => 0),
  ready: () => 0,
  shown: () => 0,  // what an element says of itself, for the server
};
const unknown = () => tell(`That needs the explorer: ${LIVE}`);
const heard = (kind, message) => (handlers[kind] ?? unknown)(message);

document.addEventListener('keydown', (event) => {
  const typing = event.composedPath().some((node) => node instanceof HTMLElement && (node.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(node.tagName)));
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || typing || about.open) return;
  const keys = {'/': () => document.dispatchEvent(new CustomEvent('dtir-search')), '?': show_about, Escape: clear, ']': () => step_finding(1), '[': () => step_finding(-1), c: () => step_communication(1), C: () => step_communication(-1), 0: () => Object.values(figures).forEach((one) => one.fit()), f: handlers.focus, g: () => handlers.view({view: 'graph'}), m: () => handlers.view({view: 'mesh'}), u: handlers['copy-link']};
  const call = keys[event.key] ?? (/^[1-9]$/.test(event.key) && DATA.tabs[event.key - 1] ? () => handlers.view({view: DATA.tabs[event.key - 1].name}) : null);
  if (call) { event.preventDefault(); call(); }
});
window.addEventListener('hashchange', () => { if (location.hash !== address()) read(); });

const asked = new URLSearchParams(location.hash.slice(1));
if (asked.get('embed') === '1') page.dataset.embed = '1';
if (asked.get('theme')) page.dataset.theme = asked.get('theme') === 'dark' ? 'dark' : 'light';
build();
models.overview?.show(DATA.states[DATA.fixed.overview].elements.overview);
state.notice = {tone: 'info', text: `A file of dtir export, complete without a server: select, hover, zoom, search, sort and download. Folding, arranging, running and comparing need ${LIVE}.${DATA.note.length ? ` In this file: ${DATA.note.join('; ')}.` : ''}`};
read();
page.dataset.ready = 'yes';
})();
