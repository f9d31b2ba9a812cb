// Draws a patch's map at once, on top of the picture that Python drew of the pinned one. It is
// mounted twice: with bytes, a layer's whole map, sent once; and with how it is drawn, which is small.
// Pickers say on `document` which cell is pointed at, as (row, col) and a name; nothing is sent.

const own = (window[Symbol.for("attnviz.live")] ??= {
  map: null, // what `unpack` gives
  look: null, // how it is drawn, and what `line` says
  line: null,
  at: null, // what is pointed at: a picker's name and its cell
});

export default function live({ data, parentElement: root }) {
  if (data instanceof Uint8Array) {
    receive(data);
    return () => {};
  }
  const turn = (own.turn = (own.turn ?? 0) + 1);
  own.look = { ...data, palette: Uint32Array.from(data.palette) };
  own.line = root.querySelector("p");
  own.pixels = null;
  document.addEventListener("attnviz-point", point);
  refresh();
  return () => {
    if (own.turn !== turn) return; // Streamlit may end one that another has already followed
    document.removeEventListener("attnviz-point", point);
    own.look = own.line = null;
    hide();
  };
}

async function receive(data) {
  own.newest = data;
  const map = await unpack(data).catch(() => ({ failed: true })); // an old browser's
  if (own.newest !== data) return; // another came in the meantime
  own.map = map;
  refresh();
}

function point({ detail: { name, cell } }) {
  // What is no longer pointed at in one picture may be pointed at in the other.
  if (cell) own.at = { name, cell };
  else if (own.at?.name === name) own.at = null;
  if (own.shown && !fits()) hide(); // pickers say so too when they are given another picture
  refresh();
}

// Once a frame is enough.
function refresh() {
  own.frame ??= requestAnimationFrame(() => {
    own.frame = null;
    draw();
  });
}

// Whether both pictures are those that the map is of: another picture, layer or head has none here.
function fits() {
  const { over, under, scenes } = own.look;
  const [scene] = sceneOf(over).split("#");
  return scene === scenes.over && sceneOf(under) === scenes.under;
}

const sceneOf = (name) => surfaceOf(name)?.dataset.scene ?? "";

function draw() {
  const { look, map, at, line } = own;
  if (!look || !line) return;
  const [over, under] = [surfaceOf(look.over), surfaceOf(look.under)];
  const [, pinned] = sceneOf(look.over).split("#");
  const found = fits() && at ? find(look.places[at.name], at.cell) : null;
  if (!found) return rest(look.words.idle);
  const { asker, patch } = found;
  if (!patch) return rest(look.words.idle); // beside the picture: no click would pin anything
  const place = `row ${patch[0]}, column ${patch[1]}`;
  if (asker < 0) return rest(look.words.silent.replace("{place}", place));
  if (String(patch) === pinned) return rest(look.words.pinned);
  if (map?.failed) return rest(look.words.failed);
  if (map?.name !== look.map) return rest(look.words.coming);
  const picture = under.querySelector("img");
  if (!picture.complete || !picture.naturalWidth) return;
  const values = mapOf(map, asker, look);
  const drawn = drawnOf(values, look);
  if (!drawn.length) return rest(look.words.silent.replace("{place}", place));
  const scale = scaleOf(values, drawn, look.scale);
  paint(partOf(over, "canvas", "img"), picture, values, scale, look);
  echo(at.name === look.over ? under : over, look, patch);
  say(line, look.words.now.replace("{place}", place).replace("{range}", range(drawn)));
}

function rest(words) {
  hide();
  say(own.line, words);
}

function hide() {
  for (const part of own.shown ?? []) part.hidden = true;
  own.shown = null;
  document.documentElement.toggleAttribute("data-live", false);
}

const say = (line, words) => line.textContent !== words && (line.textContent = words);

function range(drawn) {
  let low = Infinity;
  let high = -Infinity;
  for (const value of drawn) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  return low === high ? short(low) : `${short(low)} to ${short(high)}`;
}

// Three digits, as Python writes them.
function short(value) {
  if (!value || Math.abs(value) >= 1e-4) return String(Number(value.toPrecision(3)));
  const [digits, power] = value.toExponential(2).split("e-");
  return `${Number(digits)}e-${power.padStart(2, "0")}`;
}

// Which row of the map a cell asks by (-1: by none), and which patch a click on it would pin.
function find(place, [row, col]) {
  const at = row * place?.cols + col;
  const asker = place?.askers[at];
  return asker === undefined ? null : { asker, patch: place.named ? place.named[at] : [row, col] };
}

// The picture of a picker; it lies in a shadow of its own.
function surfaceOf(name) {
  for (const each of document.querySelectorAll(`.st-key-${name} *`)) {
    const found = each.shadowRoot?.querySelector(".surface");
    if (found) return found;
  }
  return null;
}

// The surface's own canvas, or the mark of a patch: made where there is none yet.
function partOf(surface, kind, before) {
  const found = surface.querySelector(kind);
  if (found) return found;
  const made = document.createElement(kind);
  surface.querySelector(before).after(made);
  return made;
}

// The patch that is pointed at in one picture, outlined in the other; grids that differ have none.
function echo(surface, { places, over, grid: [rows, cols], box, size }, [row, col]) {
  const mark = partOf(surface, "ins", "svg");
  const [left, top, right, bottom] = box;
  const across = (share) => `${(100 * (left + (right - left) * share)) / size[0]}%`;
  const down = (share) => `${(100 * (top + (bottom - top) * share)) / size[1]}%`;
  mark.style.inset = `${down(row / rows)} auto auto ${across(col / cols)}`;
  mark.style.width = `${(100 * (right - left)) / cols / size[0]}%`;
  mark.style.height = `${(100 * (bottom - top)) / rows / size[1]}%`;
  mark.hidden = places[over].named !== null;
  own.shown.push(mark);
}

function paint(canvas, picture, values, scale, look) {
  const [width, height] = look.size;
  if (canvas.width !== width) canvas.width = width;
  if (canvas.height !== height) canvas.height = height;
  const covered = (own.pixels ??= pixelsOf(look));
  const { down, across } = covered;
  const context = canvas.getContext("2d", { alpha: false });
  context.globalAlpha = 1;
  context.drawImage(picture, 0, 0, width, height);
  if (down.at.length && across.at.length) {
    const how = look.smooth ? bilinear : nearest;
    const pixels = how(values, colourOf(look.palette, scale), covered);
    const sheet = (own.sheet ??= document.createElement("canvas"));
    if (sheet.width !== across.at.length) sheet.width = across.at.length;
    if (sheet.height !== down.at.length) sheet.height = down.at.length;
    const bytes = new Uint8ClampedArray(pixels.buffer);
    sheet.getContext("2d").putImageData(new ImageData(bytes, sheet.width, sheet.height), 0, 0);
    context.globalAlpha = look.alpha;
    context.drawImage(sheet, across.first, down.first);
  }
  hide();
  own.shown = [canvas];
  canvas.hidden = false;
  document.documentElement.toggleAttribute("data-live", true); // what is said of the pinned map pales
  canvas.dataset.at = `${own.at.name} ${own.at.cell}`; // for those who watch
}

function pixelsOf({ grid: [rows, cols], box: [left, top, right, bottom], size: [width, height] }) {
  const [down, across] = [along(rows, top, bottom, height), along(cols, left, right, width)];
  return { rows, cols, down, across };
}

// As `live_map.LiveMap` says.
async function unpack(data) {
  const name = new TextDecoder().decode(data.subarray(0, 16));
  const stream = new Blob([data.subarray(16)]).stream();
  const buffer = await new Response(
    stream.pipeThrough(new DecompressionStream("deflate")),
  ).arrayBuffer();
  const [askers, cells] = new Int32Array(buffer, 0, 2);
  const pairs = askers * cells;
  const floats = (at) => new Float32Array(buffer, 8 + 4 * askers * at, askers);
  const bytes = (at) => new Uint8Array(buffer, 8 + 12 * askers + pairs * at, pairs);
  const corners = { low: floats(0), knee: floats(1), high: floats(2) };
  return { name, cells, ...corners, lower: bytes(0), upper: bytes(1) };
}
