const {h, put, svg, badge, sign, icon, button, live, element} = window.dtir;

export function render({model, el}) {
  const root = h('div', {class: 'topbar-box'});
  const send = (type, more = {}) => model.send_msg({type, ...more});
  const input = h('input', {
    class: 'search', type: 'search', placeholder: 'Search: name, kind:all_reduce, axis:tp, bytes>64KiB', 'data-testid': 'search',
    'aria-label': 'Search tasks', autocomplete: 'off', spellcheck: 'false', 'aria-controls': 'search-hits', role: 'combobox', 'aria-expanded': 'false',
  });
  const hits = h('div', {class: 'hits', id: 'search-hits', 'data-testid': 'search-hits', hidden: true});
  let timer = 0, data = {}, cursor = -1;
  const ask = () => send('search', {text: input.value});
  input.addEventListener('input', () => { clearTimeout(timer); cursor = -1; timer = setTimeout(ask, 90); });
  const choose = (index) => {
    const hit = (data.hits?.items ?? [])[index];
    if (hit) { send('select', {key: hit.key}); close(); }
  };
  const close = () => { hits.hidden = true; input.setAttribute('aria-expanded', 'false'); };
  input.addEventListener('keydown', (event) => {
    const count = (data.hits?.items ?? []).length;
    if (event.key === 'ArrowDown' || event.key === 'ArrowUp') {
      event.preventDefault();
      cursor = Math.max(0, Math.min(count - 1, cursor + (event.key === 'ArrowDown' ? 1 : -1)));
      hits.querySelectorAll('[role=option]').forEach((item, at) => item.setAttribute('aria-selected', at === cursor));
      hits.querySelectorAll('[role=option]')[cursor]?.scrollIntoView({block: 'nearest'});
    } else if (event.key === 'Enter') {
      event.preventDefault();
      choose(Math.max(0, cursor));
    } else if (event.key === 'Escape') {
      event.stopPropagation();
      if (!hits.hidden) close(); else { input.value = ''; ask(); input.blur(); }
    }
  });
  input.addEventListener('focus', () => { if (input.value && data.hits) show_hits(); });
  document.addEventListener('pointerdown', (event) => { if (!event.composedPath().includes(root)) close(); });
  const find = () => { input.focus(); input.select(); };
  document.addEventListener('dtir-search', find);

  const show_hits = () => {
    const found = data.hits;
    put(hits);
    if (!found || !found.text) { close(); return; }
    hits.hidden = false;
    input.setAttribute('aria-expanded', 'true');
    if (found.problem) {
      hits.append(h('div', {class: 'hits-problem', role: 'alert', 'data-testid': 'search-problem'}, found.problem,
        h('div', {class: 'mono hits-text'}, found.text.slice(0, found.start), h('mark', {'data-testid': 'search-wrong'}, found.text.slice(found.start, found.stop) || ' '), found.text.slice(found.stop))));
      return;
    }
    hits.append(h('div', {class: 'hits-head'},
      h('span', {'data-testid': 'search-count'}, found.count), found.position ? h('span', {class: 'muted', 'data-testid': 'search-position'}, found.position) : null,
      found.total ? [button('Previous hit (N)', () => send('hit-step', {step: -1}), {class: 'icon-button tiny', 'data-testid': 'search-previous'}, icon('left')), button('Next hit (n)', () => send('hit-step', {step: 1}), {class: 'icon-button tiny', 'data-testid': 'search-next'}, icon('right'))] : null,
      found.total ? button('keep only hits', () => { send('keep', {text: found.text}); close(); }, {class: 'link', 'data-testid': 'search-keep'}) : null));
    if (found.hidden) hits.append(h('div', {class: 'muted hits-hidden', 'data-testid': 'search-hidden'}, `Not drawn one by one in the graph: ${found.hidden}.`));
    hits.append(h('div', {role: 'listbox', 'aria-label': 'Hits', class: 'hits-list'}, found.items.map((hit, at) =>
      h('div', {role: 'option', class: 'hit', 'aria-selected': 'false', 'data-testid': 'search-hit', onclick: () => choose(at)},
        badge(hit.code, hit.family), h('span', {class: 'mono grow'}, hit.name), h('span', {class: 'muted'}, hit.note)))));
  };

  const left = h('div', {class: 'topbar-left'}), right = h('div', {class: 'topbar-right'});
  root.append(left, h('div', {class: 'search-box'}, icon('search'), input, h('kbd', {}, '/'), hits), right);
  live(model, (fresh) => {
    const had = data.hits?.text, open = !hits.hidden;
    data = fresh;
    put(left, 
      h('button', {type: 'button', class: 'program', onclick: () => send('gallery'), 'data-testid': 'program-menu', title: 'Open another program'},
        svg('svg', {viewBox: '0 0 24 24', width: 20, height: 20, class: 'logo', 'aria-hidden': 'true'},
          svg('path', {d: 'M2 5H9V10H2ZM15 14H22V19H15Z', fill: 'var(--family-0)'}),
          svg('path', {d: 'M15 7.5L17 5H20L22 7.5L20 10H17ZM2 16.5L4 14H7L9 16.5L7 19H4Z', fill: 'var(--family-1)'}),
          svg('path', {d: 'M9 7.5H15M18.5 10V14M5.5 10V14M9 16.5H15', stroke: 'var(--strong-line)', fill: 'none'})),
        h('span', {class: 'program-name', 'data-testid': 'program-name'}, data.name || 'No program'),
        data.file ? h('span', {class: 'program-file muted mono', title: data.file}, data.file) : null, icon('down')),
      data.digest ? h('span', {class: 'chip mono', title: `digest ${data.digest}`, 'data-testid': 'program-digest'}, data.digest.slice(0, 8)) : null,
      data.mesh ? h('span', {class: 'chip mono', title: data.mesh_note, 'data-testid': 'program-mesh'}, data.mesh) : null,
      data.counts ? h('span', {class: 'muted wide', 'data-testid': 'program-counts'}, data.counts) : null);
    put(right, 
      ...(data.findings ?? []).map((item) => button(`${item.count} ${item.severity}: show the diagnostics`, () => send('findings', {severity: item.severity}),
        {class: `finding-count sev-${item.severity}`, 'data-testid': `count-${item.severity}`}, sign(item.severity), item.count)),
      data.clean ? h('span', {class: 'muted wide', 'data-testid': 'count-clean'}, '✓ no findings') : null,
      button('Copy a link to this view', () => send('copy-link'), {class: 'icon-button', 'data-testid': 'copy-link'}, icon('link')),
      button(data.dark ? 'Light theme' : 'Dark theme', () => send('theme', {dark: !data.dark}), {class: 'icon-button', 'data-testid': 'theme'}, icon(data.dark ? 'sun' : 'moon')),
      button('Help and keys (?)', () => document.dispatchEvent(new CustomEvent('dtir-help')), {class: 'icon-button', 'data-testid': 'help'}, icon('question')));
    if (had !== data.hits?.text || open) show_hits();
  });
  return element(root, el);
}
