const {h, put, button, live, keeping_focus, element} = window.dtir;

// Run the program here: the form, how far it is, and the runs that can be compared.
export function render({model, el}) {
  const send = (type, more = {}) => model.send_msg({type, ...more});
  const root = h('div', {class: 'run-box'});
  const number = (data, name, label, low, high) => [h('label', {for: `run-${name}`}, label), h('input', {id: `run-${name}`, type: 'number', min: low, max: high, value: data.asked[name], 'data-testid': `run-${name}`, 'data-focus': name, onchange: (event) => send('run-set', {[name]: Math.round(Number(event.target.value))})})];
  const check = (data, name, label) => h('label', {class: 'wide-field'}, h('input', {type: 'checkbox', checked: data.asked[name], 'data-testid': `run-${name}`, 'data-focus': name, onchange: (event) => send('run-set', {[name]: event.target.checked})}), ` ${label}`);
  live(model, (data) => {
    if (!data.program) { put(root); return; }
    const now = data.running, active = !!now.active;
    const chosen = data.backends.find((item) => item.on);
    const seats = data.seats, written = !!seats.ways?.some((item) => item.on && item.name === 'written');
    const can = !active && !data.looking && !data.obstacles.length && chosen?.ok && !seats.problem;
    keeping_focus(root, () => put(root, h('div', {class: 'run-grid'},
      h('section', {class: 'card', 'data-testid': 'run-form'}, h('h2', {}, 'Run here'),
        data.looking ? h('div', {class: 'busy', role: 'status'}, h('span', {class: 'spinner', 'aria-hidden': 'true'}), 'looking at what can run …') : null,
        data.obstacles.length ? h('div', {class: 'tone-error', 'data-testid': 'run-obstacles'}, h('p', {}, 'This program cannot be run:'), data.obstacles.map(([code, message, hint]) => h('div', {class: 'notice-line'}, h('b', {class: 'mono'}, code), ` ${message}`, hint ? h('span', {class: 'muted'}, ` ${hint}`) : null))) : null,
        h('div', {role: 'radiogroup', 'aria-label': 'Back end'}, data.backends.map((item) => h('label', {class: `backend${item.ok ? '' : ' off'}`, 'data-testid': `run-backend-${item.name}`},
          h('input', {type: 'radio', name: 'backend', value: item.name, checked: item.on, disabled: !item.ok, 'data-focus': `backend-${item.name}`, onchange: () => send('run-set', {backend: item.name})}), h('b', {}, item.name), item.ok ? h('span', {class: 'muted'}, item.reason) : h('details', {class: 'muted'}, h('summary', {}, 'cannot run here'), item.reason)))),
        h('div', {class: 'run-form'},
          seats.ways ? [h('label', {for: 'run-way'}, `${data.ranks} ranks on processes`), h('select', {id: 'run-way', 'data-testid': 'run-way', 'data-focus': 'way', onchange: (event) => send('run-set', {way: event.target.value})}, seats.ways.map((item) => h('option', {value: item.name, selected: item.on}, item.label)))] : null,
          seats.ways && !written ? number(data, 'processes', 'processes', 1, data.most.processes) : null,
          written ? [h('label', {for: 'run-written'}, 'ranks of each process'), h('textarea', {id: 'run-written', rows: 2, spellcheck: 'false', placeholder: '0 1 | 2-3, or a binding file', 'data-testid': 'run-written', 'data-focus': 'written', 'aria-describedby': 'run-seats', 'aria-invalid': String(!!seats.problem), onchange: (event) => send('run-set', {written: event.target.value})}, seats.written)] : null,
          seats.ways ? h('p', {id: 'run-seats', class: `wide-field ${seats.problem ? 'tone-error' : 'muted'}`, role: 'status', 'data-testid': 'run-seats'}, seats.problem || seats.text) : null,
          number(data, 'repetitions', 'repetitions', 1, data.most.repetitions), number(data, 'warmup', 'warm-up runs', 0, data.most.repetitions),
          check(data, 'isolated', 'wait for all ranks before every communication'), check(data, 'skip_local', 'communication only')),
        h('p', {}, active ? button('Cancel', () => send('run-cancel'), {class: 'button', 'data-testid': 'run-cancel', 'data-focus': 'go'}) : button('Run', () => send('run-start'), {class: 'button run-primary', disabled: !can, 'data-testid': 'run-start', 'data-focus': 'go'}),
          ' ', now.text ? h('span', {class: 'muted', role: 'status', 'data-testid': 'run-status'}, now.text) : null),
        active ? h('progress', {class: 'run-progress', max: now.total || 1, value: now.total ? now.done : null, 'aria-label': 'Progress of the run', 'data-testid': 'run-progress'}) : null,
        (now.refused ?? []).map(([code, message, hint]) => h('div', {class: 'notice-line tone-error', 'data-testid': 'run-refused'}, h('b', {class: 'mono'}, code), ` ${message}`, hint ? h('span', {class: 'muted'}, ` ${hint}`) : null))),
      h('section', {class: 'card', 'data-testid': 'run-list'}, h('h2', {}, 'Runs of this program'),
        data.runs.length ? h('table', {class: 'table', role: 'grid', 'aria-label': 'Runs'}, h('thead', {}, h('tr', {}, ['', 'run', 'one repetition', 'findings'].map((name) => h('th', {scope: 'col'}, name)))),
          h('tbody', {}, data.runs.map((item) => h('tr', {class: item.on ? 'selected' : '', 'aria-selected': String(item.on), tabindex: 0, 'data-testid': 'run-row', 'data-focus': `run-${item.key}`, onclick: () => send('run-choose', {run: item.on ? '' : item.key}), onkeydown: (event) => { if (event.key === 'Enter') send('run-choose', {run: item.on ? '' : item.key}); }},
            h('td', {}, item.on ? '●' : '○'), h('td', {title: item.label}, item.label), h('td', {class: 'number'}, item.elapsed), h('td', {}, item.findings))))) : h('p', {class: 'muted'}, 'None yet. Run it here, start the explorer with a run record beside the program, or drop a record onto the page of programs.'),
        data.summary.length ? h('div', {'data-testid': 'run-summary'}, h('h2', {}, 'The chosen run'), h('p', {class: 'muted'}, data.shown), h('dl', {class: 'keys'}, data.summary.map((item) => [h('dt', {}, item.label), h('dd', {class: item.bad ? 'tone-error' : ''}, item.value)])),
          h('p', {}, ['timeline', 'traffic'].map((view) => button(`show in ${view}`, () => send('view', {view}), {class: 'button small', 'data-testid': `run-to-${view}`})))) : null))));
  });
  return element(root, el);
}
