const {h, put, icon, button, element} = window.dtir;

// What only a browser can do: keys, the address bar, downloads, announcements, the help dialog, panes that change size.
export function render({model, el}) {
  const send = (type, more = {}) => model.send_msg({type, ...more});
  const root = h('div', {class: 'bridge-box'});
  const announce = h('div', {class: 'sr-only', role: 'status', 'aria-live': 'polite', 'data-testid': 'announce'});
  const help = h('dialog', {class: 'help', 'aria-label': 'Help and keys', 'data-testid': 'help-dialog'});
  root.append(announce, help);
  const page = document.documentElement;

  // -- help
  let keys = [], grammar = [];
  const open_help = () => {
    put(help, 
      h('div', {class: 'help-head'}, h('h2', {}, 'Keys and search'), button('Close', () => help.close(), {class: 'icon-button', 'data-testid': 'help-close'}, icon('close'))),
      h('div', {class: 'help-columns'},
        h('dl', {class: 'keys'}, keys.map(([key, text]) => [h('dt', {}, key.split(' ').map((part) => h('kbd', {}, part))), h('dd', {}, text)])),
        h('div', {}, h('p', {}, 'Search: words and conditions, all must hold. Example: ', h('code', {}, 'kind:all_reduce axis:tp bytes>64KiB')), h('dl', {class: 'keys'}, grammar.map(([key, text]) => [h('dt', {}, h('code', {}, key)), h('dd', {}, text)])))));
    if (!help.open) help.showModal();
  };
  document.addEventListener('dtir-help', open_help);

  // -- keys: never while typing, never with a modifier
  const typing = (event) => event.composedPath().some((node) => node instanceof HTMLElement && (node.isContentEditable || ['INPUT', 'TEXTAREA', 'SELECT'].includes(node.tagName)));
  const on_key = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented || typing(event)) return;
    if (help.open) return;
    if (event.key === '/') { event.preventDefault(); document.dispatchEvent(new CustomEvent('dtir-search')); return; }
    if (event.key === '?') { event.preventDefault(); open_help(); return; }
    if (event.key === 'b') { event.preventDefault(); document.dispatchEvent(new CustomEvent('dtir-box-zoom')); return; }
    const known = ['Escape', ',', '.', 'r', 'p', 'n', 'N', '[', ']', 'c', 'C', 'f', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'm', 't', 'g', 'o', 'e', 'x', 'u', 'ArrowLeft', 'ArrowRight', 'ArrowUp', 'ArrowDown'];
    if (!known.includes(event.key)) return;
    const inside = event.composedPath().some((node) => node instanceof HTMLElement && ['tree', 'grid', 'listbox', 'slider'].includes(node.getAttribute?.('role')));
    if (event.key.startsWith('Arrow') && inside) return;
    event.preventDefault();
    send('key', {key: event.key});
  };
  // In a notebook the page is not ours: no keys, no address, no theme.
  const whole = Boolean(document.querySelector('header#topbar'));
  if (whole) document.addEventListener('keydown', on_key);

  // -- address bar: we write it, and read it back when a person goes back
  if (whole) window.addEventListener('popstate', () => send('address', {search: location.search}));

  // -- theme: the cookie lets the server draw the next page in it at once
  const set_theme = (dark) => {
    if (!whole) return;
    page.dataset.theme = dark ? 'dark' : 'light';
    document.cookie = `dtir_theme=${dark ? 'dark' : 'light'}; path=/; max-age=31536000; SameSite=Strict`;
  };

  // -- drawer and panes
  const stored = (name, fallback) => { try { return localStorage.getItem(name) ?? fallback; } catch { return fallback; } };
  const store = (name, value) => { try { localStorage.setItem(name, value); } catch { /* private mode */ } };
  const toggle_drawer = () => { page.dataset.drawer = page.dataset.drawer === 'closed' ? 'open' : 'closed'; store('dtir-drawer', page.dataset.drawer); };
  page.dataset.drawer = stored('dtir-drawer', 'open');
  document.addEventListener('dtir-drawer', toggle_drawer);
  const size = (name) => stored(`dtir-${name}`, '') && page.style.setProperty(`--${name}`, stored(`dtir-${name}`, ''));
  for (const name of ['rail-width', 'inspector-width', 'drawer-height']) size(name);
  for (const handle of document.querySelectorAll('[data-resize]')) {
    const name = handle.dataset.resize;
    const apply = (value) => { page.style.setProperty(`--${name}`, `${Math.round(value)}px`); store(`dtir-${name}`, `${Math.round(value)}px`); };
    const current = () => parseFloat(getComputedStyle(page).getPropertyValue(`--${name}`));
    const bounded = (value) => Math.max(120, Math.min(name === 'drawer-height' ? innerHeight * 0.7 : innerWidth * 0.45, value));
    handle.addEventListener('pointerdown', (event) => {
      handle.setPointerCapture(event.pointerId);
      const move = (moved) => apply(bounded(name === 'rail-width' ? moved.clientX : name === 'inspector-width' ? innerWidth - moved.clientX : innerHeight - moved.clientY));
      handle.addEventListener('pointermove', move);
      handle.addEventListener('pointerup', () => handle.removeEventListener('pointermove', move), {once: true});
    });
    handle.addEventListener('keydown', (event) => {
      const step = {ArrowLeft: -16, ArrowRight: 16, ArrowUp: 16, ArrowDown: -16}[event.key];
      if (step) { event.preventDefault(); event.stopPropagation(); apply(bounded(current() + (name === 'inspector-width' ? -step : step))); }
    });
  }
  for (const opener of document.querySelectorAll('[data-pane]')) opener.addEventListener('click', () => { page.dataset.pane = page.dataset.pane === opener.dataset.pane ? '' : opener.dataset.pane; });

  // What changes within a view while it is moved is written when it rests: browsers allow some 200 changes of the address in half a minute.
  let written = null, rest = 0;
  const write_address = () => {
    clearTimeout(rest);
    if (written && location.search !== written.query) history[written.replace ? 'replaceState' : 'pushState'](null, '', written.query || location.pathname);
    written = null;
  };
  const handlers = {
    address: ({query, replace}) => {
      if (!whole) return;
      if (page.dataset.embed) query = query ? `${query}&embed=1` : '?embed=1';
      if (!replace) write_address();  // so that going back leads to what was last seen
      written = {query, replace};
      clearTimeout(rest);
      if (replace) rest = setTimeout(write_address, 200); else write_address();
    },
    title: ({text}) => { if (whole) document.title = text; },
    theme: ({dark}) => set_theme(dark),
    announce: ({text}) => { announce.textContent = text; },
    copy: ({text}) => navigator.clipboard?.writeText(text).catch(() => 0),
    'copy-link': () => (write_address(), navigator.clipboard?.writeText(location.href).then(() => { announce.textContent = 'Link copied'; }).catch(() => 0)),
    download: ({name, mime, text}) => {
      const url = URL.createObjectURL(new Blob([text], {type: mime}));
      const anchor = h('a', {href: url, download: name});
      root.append(anchor);
      anchor.click();
      anchor.remove();
      setTimeout(() => URL.revokeObjectURL(url), 10000);
    },
    help: (message) => { keys = message.keys; grammar = message.grammar; },
    drawer: () => { if (page.dataset.drawer === 'closed') toggle_drawer(); },
  };
  model.on('msg:custom', (event) => { const message = event.data ?? event; handlers[message.type]?.(message); });
  if (whole) send('ready', {dark: page.dataset.theme === 'dark', search: location.search});
  page.dataset.ready = 'yes';
  return element(root, el);
}
