const {h, put, live, keeping_focus, element} = window.dtir;

// What is compared: a machine profile for the planned side, a run for the measured one.
export function render({model, el}) {
  const send = (type, more = {}) => model.send_msg({type, ...more});
  const root = h('div', {class: 'sides-box'});
  live(model, (data) => {
    if (!data.profiles) { put(root); return; }
    keeping_focus(root, () => put(root, h('div', {class: 'bar-row'},
      !data.profiles.length ? null : [h('label', {class: 'pick'}, h('span', {class: 'side-tag planned'}, 'planned'), h('select', {class: 'select', 'aria-label': 'Machine profile of the planned side', 'data-testid': 'plan-profile', 'data-focus': 'profile', onchange: (event) => send('plan-profile', {profile: event.target.value})},
        data.profiles.map((item) => h('option', {value: item.name, selected: item.on}, item.name)))),
      data.busy ? h('span', {class: 'busy', role: 'status', 'data-testid': 'plan-busy'}, h('span', {class: 'spinner', 'aria-hidden': 'true'}), 'planning …') : h('span', {class: 'muted cut plan-title', 'data-testid': 'plan-title', title: data.notes.join('; ')}, data.planned),
      h('span', {class: 'side-gap'})],
      h('label', {class: 'pick'}, h('span', {class: 'side-tag measured'}, 'measured'), data.runs.length
        ? h('select', {class: 'select', 'aria-label': 'Run of the measured side', 'data-testid': 'run-pick', 'data-focus': 'run', onchange: (event) => send('run-choose', {run: event.target.value})}, h('option', {value: '', selected: !data.measured}, 'none'), data.runs.map((item) => h('option', {value: item.key, selected: item.on}, item.label)))
        : h('span', {class: 'muted', 'data-testid': 'run-none'}, 'no run of this program is open')),
      data.measured ? h('span', {class: 'muted cut', title: data.run_notes.join('; '), 'data-testid': 'run-notes'}, data.run_notes.join('; ')) : null,
      data.can_run ? h('button', {type: 'button', class: 'button small right', 'data-testid': 'run-open', 'data-focus': 'run-open', onclick: () => send('view', {view: 'run'})}, 'Run …') : null),
    data.reasons.map((text) => h('div', {class: 'limit', role: 'status', 'data-testid': 'plan-reason'}, text))));
  });
  return element(root, el);
}
