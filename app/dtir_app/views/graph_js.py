"""What the graph figure does in the browser by itself: labels that fit the zoom, the camera, and saying what is in sight.

These are needed there, since only the browser knows how many pixels a figure has.
"""

# Texts are measured one by one, which takes longer than drawing all shapes: only those are made that fit and are in sight or near.
LABELS = """
if (!size('inner_width') || !size('inner_height')) return;
const px = size('inner_width') / Math.abs(xr.end - xr.start), py = size('inner_height') / Math.abs(yr.end - yr.start);
const width = px * 2 * half_width, height = py * 2 * half_height;
const show = !nodes.tags[1] && width > 24 && height > 10, two = height > 26, full = width > 46;
const [x0, x1, y0, y1] = [xr.start, xr.end, yr.end, yr.start];
// Nothing to do while neither the data nor the room for text changed, and what is in sight has its texts.
const key = [show, two, full, show ? Math.round(width) : 0].join();
const there = texts._part, slack = 1e-9 * (x1 - x0);
const inside = there && x0 >= there[0] - slack && x1 <= there[1] + slack && y0 >= there[2] - slack && y1 <= there[3] + slack;
if (texts._of === nodes.data && texts._key === key && (!show || inside)) return;
[texts._of, texts._key] = [nodes.data, key];
// Signs of findings shrink with the items, so that many of them do not cover a picture seen from afar.
const sign = nodes.tags[1] ? 7 : Math.max(3, Math.min(13, height * 0.8));
Object.assign(mark.glyph, {size: {value: sign}, line_width: {value: sign < 8 ? 0.5 : 1.5}});
code.visible = show;
label.visible = show && full;
detail.visible = show && full && two;
if (!show) return;
const mx = (x1 - x0) * 0.3, my = (y1 - y0) * 0.3;
const [left, right, top, bottom] = texts._part = [x0 - mx, x1 + mx, y0 - my, y1 + my];
const d = nodes.data, made = Object.fromEntries(Object.keys(texts.data).map((name) => [name, []]));
const cut = (text, chars) => text.length <= chars ? text : chars < 5 ? '' : text.slice(0, chars - 1) + '…';
for (let i = 0; i < d.x.length; i++) {
  if (d.x[i] < left - 0.5 || d.x[i] > right + 0.5 || d.y[i] < top - 0.5 || d.y[i] > bottom + 0.5) continue;
  const pad = d.family[i] === '0' ? 5 : d.family[i] === '3' ? width * 0.22 : Math.min(12, width * 0.11);
  const room = width - 2 * pad, code_px = d.code[i] ? d.code[i].length * 7.2 + 5 : 0;
  made.left.push(d.x[i] - half_width);
  made.y.push(d.y[i]);
  made.family.push(d.family[i]);
  made.alpha.push(d.alpha[i]);
  made.pad.push(pad);
  made.code.push(code_px - 4 > room ? d.code[i].split(' ')[0].slice(0, Math.max(1, Math.floor(room / 7.2))) : d.code[i]);
  made.offset.push(pad + code_px);
  made.label.push(full ? cut(d.name[i], Math.floor((room - code_px) / 5.7)) : '');
  made.detail.push(full && two ? cut(d.detail_text[i], Math.floor(room / 5.4)) : '');
  made.lift.push(two && full ? -7 : 0);
}
Object.assign(texts.data, made);
texts.change.emit();  // not by setting `data`: the server need not know
"""

CAMERA = """
const c = camera.data, kind = c.kind[0];
const w = size('inner_width'), h = size('inner_height');
if (!kind || !w || !h) return;
const ratio = lane_px / level_px;
const set = (cx, cy, px, py = px * ratio) => {
  xr.setv({start: cx - w / px / 2, end: cx + w / px / 2});
  yr.setv({start: cy + h / py / 2, end: cy - h / py / 2});
};
const legible = 44, closest = 170;
const whole = Math.min(w / (c.width[0] + 0.4), h / (c.height[0] + 0.5) * level_px / lane_px, closest);
// A wide picture may use spare height: taller items have room for a second line.
const tall = Math.min(h / (c.height[0] + 0.5), whole * ratio * 1.9, Math.max(whole * ratio, 46));
const fit = () => set((c.width[0] - 1) / 2, (c.height[0] - 1) / 2, whole, tall);
const x = c.x[0], y = c.y[0], now = w / Math.abs(xr.end - xr.start);
if (kind === 'box') {
  xr.setv({start: x - c.width[0] / 2, end: x + c.width[0] / 2});
  yr.setv({start: y + c.height[0] / 2, end: y - c.height[0] / 2});
} else if (kind === 'fit' || (kind === 'go' && whole >= legible)) fit();
else if (kind === 'go') set(x, y, level_px);
else {
  const mx = Math.abs(xr.end - xr.start) * 0.08, my = Math.abs(yr.end - yr.start) * 0.08;
  const inside = x > xr.start + mx && x < xr.end - mx && y > yr.end + my && y < yr.start - my;
  const readable = now >= legible * 0.9 && now <= closest * 2;
  const all = xr.start <= -0.5 && xr.end >= c.width[0] - 0.5 && yr.end <= -0.5 && yr.start >= c.height[0] - 0.5;
  if (!readable && whole >= legible) fit();
  else if (!readable) set(x, y, level_px);
  else if (!all && (!inside || kind === 'centre')) set(x, y, now);
}
camera.data = {...c, kind: ['']};
"""

# With Alt held: which item the pointer is on, told once for each; nothing when it leaves or the key is let go.
PEEK = """
const tell = (item) => { if ((peek.data.item[0] ?? -1) !== (item ?? -1)) peek.data = {item: item === undefined ? [] : [item]}; };
if (!fig._lets_go) {
  fig._lets_go = true;
  document.addEventListener('keyup', (event) => { if (event.key === 'Alt') tell(); });
}
const {x, y, modifiers} = cb_obj, d = nodes.data;
if (cb_obj.event_name === 'mouseleave' || !modifiers?.alt) return tell();
const at = Array.prototype.findIndex.call(d.x, (here, i) => Math.abs(here - x) <= half_width && Math.abs(d.y[i] - y) <= half_height);
tell(at < 0 ? undefined : d.item[at]);
"""

# A large picture is asked for anew when what is in sight leaves what was sent, or is much smaller than it; at most every 60 ms. What is
# in sight is told after a rest too, for the address.
VIEWPORT = """
if (!size('inner_width') || !Number.isFinite(xr.start) || !Number.isFinite(yr.start)) return;
const waits = () => camera.data.kind[0] !== '';  // the picture is about to be moved: what is in sight now says nothing
const tell = () => {
  if (waits()) return;
  const told = [xr.start, xr.end, yr.end, yr.start];
  seen._told_at = Date.now();
  if (seen._told && told.every((number, at) => Math.abs(number - seen._told[at]) < 1e-6)) return;
  seen._told = told;
  seen.data = {left: [told[0]], right: [told[1]], top: [told[2]], bottom: [told[3]]};
};
clearTimeout(seen._rest);
seen._rest = setTimeout(tell, 300);
const [, , left, right, top, bottom] = nodes.tags;
if (left === undefined || waits()) return;
const slack = 1e-6 * (right - left);
const gone = xr.start < left - slack || xr.end > right + slack || yr.end < top - slack || yr.start > bottom + slack;
const closer = nodes.tags[1] && ((xr.end - xr.start) < (right - left) / 1.5 * 0.7 || (yr.start - yr.end) < (bottom - top) / 1.5 * 0.7);
if (!gone && !closer) return;
clearTimeout(seen._soon);
seen._soon = setTimeout(tell, Math.max(0, 60 - (Date.now() - (seen._told_at ?? 0))));
"""
