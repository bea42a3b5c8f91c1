const {h, put, live, keeping_focus, element} = window.dtir;

export function render({model, el}) {
  const send = (type, more = {}) => model.send_msg({type, ...more});
  const root = h('div', {class: 'tablist main-tabs', role: 'tablist', 'aria-label': 'Views'});
  live(model, (data) => keeping_focus(root, () => {
    document.documentElement.dataset.view = data.view;
    document.documentElement.dataset.page = data.page;
    put(root, ...(data.tabs ?? []).map((tab, at) => h('button', {
      type: 'button', role: 'tab', class: 'tab', 'aria-selected': String(tab.name === data.view), 'data-testid': `view-${tab.name}`, 'data-focus': tab.name, title: `${tab.help} (${at + 1})`,
      onclick: () => send('view', {view: tab.name}),
    }, tab.label)));
    if (data.busy) root.append(h('span', {class: 'busy right', role: 'status', 'data-testid': 'busy'}, h('span', {class: 'spinner', 'aria-hidden': 'true'}), data.busy));
  }));
  return element(root, el);
}
