const {h, put, sign, icon, button, live, element} = window.dtir;

export function render({model, el}) {
  const send = (type, more = {}) => model.send_msg({type, ...more});
  const root = h('div', {class: 'notices', role: 'alert'});
  live(model, (data) => { document.documentElement.dataset.notice = data.tone ?? ''; put(root, ...(data.tone ? [h('div', {class: `notice sev-${data.tone}`, 'data-testid': 'notice'}, sign(data.tone === 'error' ? 'error' : data.tone === 'warning' ? 'warning' : 'info'),
    h('div', {class: 'grow'}, h('div', {class: 'strong'}, data.text), (data.lines ?? []).map((line) => h('div', {class: 'notice-line'}, h('span', {class: 'mono'}, line.code), ' ', line.message, line.hint ? h('span', {class: 'muted'}, ` ${line.hint}`) : null)), data.more ? h('div', {class: 'muted'}, data.more) : null),
    button('Dismiss', () => send('dismiss'), {class: 'icon-button small', 'data-testid': 'notice-close'}, icon('close')))] : [])); });
  return element(root, el);
}
