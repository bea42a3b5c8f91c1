const {h, put, live, keeping_focus, element} = window.dtir;

export function render({model, el}) {
  const send = (type, more = {}) => model.send_msg({type, ...more});
  const root = h('div', {class: 'tablist main-tabs', role: 'tablist', 'aria-label': 'Views'});
  // Where there is no room for all tabs the row scrolls; the one that is shown is brought into sight.
  const reveal = () => {
    root.classList.toggle('scrolls', root.scrollWidth > root.clientWidth + 1);
    const shown = root.querySelector('[aria-selected=true]');
    if (shown && (shown.offsetLeft < root.scrollLeft || shown.offsetLeft + shown.offsetWidth > root.scrollLeft + root.clientWidth)) root.scrollLeft = shown.offsetLeft - root.clientWidth / 2 + shown.offsetWidth / 2;
  };
  new ResizeObserver(reveal).observe(root);
  root.addEventListener('wheel', (event) => { if (root.classList.contains('scrolls') && !event.shiftKey) { root.scrollLeft += event.deltaY + event.deltaX; event.preventDefault(); } }, {passive: false});
  root.addEventListener('keydown', (event) => {
    const tabs = [...root.querySelectorAll('[role=tab]')], at = tabs.indexOf(event.target);
    const to = {ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: tabs.length - 1}[event.key];
    if (at < 0 || to === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    tabs[(to + tabs.length) % tabs.length].focus();
  });
  live(model, (data) => keeping_focus(root, () => {
    document.documentElement.dataset.view = data.view;
    document.documentElement.dataset.page = data.page;
    put(root, ...(data.tabs ?? []).map((tab, at) => h('button', {
      type: 'button', role: 'tab', class: 'tab', 'aria-selected': String(tab.name === data.view), 'data-testid': `view-${tab.name}`, 'data-focus': tab.name, title: `${tab.help} (${at + 1})`,
      onclick: () => send('view', {view: tab.name}),
    }, tab.label)));
    if (data.busy) root.append(h('span', {class: 'busy right', role: 'status', 'data-testid': 'busy'}, h('span', {class: 'spinner', 'aria-hidden': 'true'}), data.busy));
    reveal();
  }));
  return element(root, el);
}
