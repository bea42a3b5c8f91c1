const {h, put, sign, icon, button, live, keeping_focus, element} = window.dtir;

// The finding gone through: what was found, its picture, what the picture says in words, and what would mend it.
export function render({model, el}) {
  const send = (type, more = {}) => model.send_msg({type, ...more});
  const root = h('div', {class: 'finding-box', 'data-testid': 'finding-panel'});
  const draw = (data) => {
    if (!data.head) { put(root, h('div', {class: 'empty'}, data.message ?? '')); return; }
    const {head, picture} = data;
    put(root,
      h('header', {class: 'finding-head'},
        h('div', {class: 'finding-line'},
          head.severity ? sign(head.severity) : h('span', {class: 'calm-sign', 'aria-hidden': 'true'}, '✓'),
          h('span', {class: 'mono strong', 'data-testid': 'finding-code'}, head.code), h('span', {class: 'muted'}, head.name),
          h('span', {class: 'right tools'},
            head.count ? [
              button('Previous finding ([)', () => send('key', {key: '['}), {class: 'icon-button small', 'data-testid': 'finding-previous', 'data-focus': 'previous'}, icon('left')),
              h('span', {class: 'muted nowrap', 'data-testid': 'finding-number'}, head.count),
              button('Next finding (])', () => send('key', {key: ']'}), {class: 'icon-button small', 'data-testid': 'finding-next', 'data-focus': 'next'}, icon('right')),
            ] : null)),
        h('p', {class: 'finding-message', 'data-testid': 'finding-message'}, head.message)),
      picture.choices.length ? h('div', {class: 'picture-choices'}, picture.choices.map((choice) => h('span', {class: 'segmented', role: 'group', 'aria-label': choice.label},
        h('span', {class: 'muted'}, choice.label), choice.options.map(([value, label]) => button(label, () => send('finding-choose', {name: choice.name, value}), {class: 'chip toggle' + (value === choice.chosen ? ' on' : ''), 'aria-pressed': String(value === choice.chosen), 'data-testid': `choice-${choice.name}-${value}`, 'data-focus': `choice-${choice.name}-${value}`}))))) : null,
      h('p', {class: 'picture-says', 'data-testid': 'picture-says'}, picture.says),
      picture.busy ? h('div', {class: 'busy', role: 'status', 'data-testid': 'picture-busy'}, h('span', {class: 'spinner'}), picture.busy) : null,
      picture.marks.length ? h('div', {class: 'picture-scroll'}, draw_picture(picture, send)) : null,
      draw_legend(picture),
      picture.buttons.length ? h('section', {class: 'repairs', 'aria-label': 'What would mend it'}, h('h3', {}, 'Try a repair: the judge runs again with it'), picture.buttons.map((item) => h('div', {class: 'repair'},
        button(item.label, () => send('finding-repair', {name: item.name}), {class: `button small repair-${item.state || 'new'}`, disabled: item.state === 'busy', 'data-testid': 'repair', 'data-state': item.state || 'new', 'data-focus': `repair-${item.name}`}),
        item.note ? h('span', {class: `repair-note fact-${item.state}`, role: 'status', 'data-testid': 'repair-note'}, item.note) : null))) : null,
      h('p', {class: 'picture-fix', 'data-testid': 'picture-fix'}, h('strong', {}, head.severity ? 'Fix: ' : ''), picture.fix),
      draw_facts(picture, send));
  };
  live(model, (data) => keeping_focus(root, () => draw(data)));
  return element(root, el);
}
