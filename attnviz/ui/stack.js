// The stack of layers × heads: what is on the page, and how it is looked at. What a person does with it
// is in `stack_hands.js`; all of `stack_*.js` is joined with this to one module by `stack.py`.

const VIEWS = {
  reset: { yaw: -30, pitch: 28 },
  front: { yaw: 0, pitch: 34 },
  side: { yaw: -68, pitch: 22 },
  above: { yaw: 0, pitch: 90 },
};
const USUAL = { spacing: 0.75, zoom: 1 };
const ZOOM = { least: 0.7, most: 12 };
const GLIDE = 350; // milliseconds from one view to another

// How somebody looks at it outlives a change of the view: the next stack is seen the same way.
const kept = { ...VIEWS.reset, ...USUAL, pan: [0, 0], seeThrough: false };
const memories = new WeakMap(); // one for each stack on the page: what outlives a rerun

// Streamlit calls this once when mounted and again whenever the data or the theme changed.
export default function stack({ data, parentElement: root, setTriggerValue }) {
  if (!memories.has(root)) memories.set(root, remember(root));
  const memory = memories.get(root);
  memory.send = ({ layer, head }) => setTriggerValue("opened", [layer, head]);
  memory.tellSeeThrough = (on) => setTriggerValue("seen", [on]); // for the page's address
  memory.ink = inkOf(root.querySelector(".scene"));
  tell(memory, data);
  if (memory.painter) show(memory, data);
  const turn = (memory.turn += 1);
  return () => {
    if (turn !== memory.turn) return; // Streamlit may end a call that another has already followed
    memory.gone = true;
    memory.watch.disconnect();
    cancelAnimationFrame(memory.asked);
    if (memory.painter) end(memory.painter);
  };
}

function remember(root) {
  const find = (name) => root.querySelector(name);
  const scene = find(".scene");
  const memory = {
    root, find, stage: scene, data: null, images: null, scene: null, camera: null,
    hover: null, cursor: null, touches: new Map(), drag: null, asked: 0, glide: null, frames: 0,
    turn: 0,
  };
  memory.painter = painterOn(find("canvas"));
  find(".stack").classList.toggle("flat", !memory.painter);
  memory.watch = new ResizeObserver(() => draw(memory));
  memory.watch.observe(scene);
  if (memory.painter) listen(memory, scene, find);
  return memory;
}

// What can be read without seeing the scene.
function tell({ find }, { alt, table, word }) {
  find(".scene").setAttribute("aria-label", `${alt}. ${find(".keys").textContent}`);
  const rows = table.map((cells) => {
    const row = document.createElement("tr");
    for (const text of cells) row.insertCell().textContent = text;
    return row;
  });
  find("tbody").replaceChildren(...rows);
  find("caption").textContent = word;
}

async function show(memory, data) {
  const { painter, find } = memory;
  const before = memory.data;
  memory.wanted = data;
  if (data.atlas !== before?.atlas || data.palette !== before?.palette || data.picture !== before?.picture) {
    const names = ["atlas", "palette", "picture"];
    const images = await Promise.all(names.map((name) => decoded(data[name])));
    if (memory.gone || memory.wanted !== data) return; // newer ones are on their way
    memory.images = Object.fromEntries(names.map((name, i) => [name, images[i]]));
    if (!painter.gl.isContextLost()) load(painter, memory.images);
  }
  const chosenElsewhere = String(before?.chosen) !== String(data.chosen);
  if (before?.seeThrough !== data.seeThrough) kept.seeThrough = data.seeThrough;
  memory.data = data;
  find(".spacing").value = kept.spacing;
  find(".see-through").checked = kept.seeThrough;
  find(".mixed").hidden = !kept.seeThrough;
  build(memory);
  memory.hover &&= sheetOf(memory, [memory.hover.layer, memory.hover.head]);
  memory.cursor &&= chosenElsewhere ? null : sheetOf(memory, [memory.cursor.layer, memory.cursor.head]);
  point(memory);
}

async function decoded(address) {
  const image = new Image();
  image.src = address;
  await image.decode();
  return image;
}

function build(memory) {
  memory.scene = sceneOf(memory.data, kept.spacing);
  memory.labels = labelsOf(memory);
  draw(memory);
}

function sheetOf({ scene }, place) {
  const [layer, head] = place ?? [];
  const slab = scene.slabs.find((one) => one.layer === layer);
  return slab?.sheets.find((one) => one.head === head) ?? null;
}

// One frame, when the browser next paints; many wishes make one.
function draw(memory) {
  if (!memory.scene || memory.asked || memory.gone) return;
  memory.asked = requestAnimationFrame((now) => {
    memory.asked = 0;
    if (memory.glide && !step(memory.glide, now)) memory.glide = null;
    frame(memory);
    if (memory.glide) draw(memory);
  });
}

function frame(memory) {
  const { painter, stage, data, scene, ink } = memory;
  const [width, height] = [stage.clientWidth, stage.clientHeight];
  const sharp = Math.min(devicePixelRatio, 2);
  if (!width || !height || painter.gl.isContextLost()) return;
  const { canvas } = painter;
  const [across, down] = [Math.round(width * sharp), Math.round(height * sharp)];
  if (canvas.width !== across) canvas.width = across; // setting it empties the canvas
  if (canvas.height !== down) canvas.height = down;
  memory.camera = cameraOf(scene, kept, width, height);
  const chosen = sheetOf(memory, data.chosen);
  const [pointed, marks] = [memory.hover ?? memory.cursor, []];
  if (chosen) marks.push([chosen, ink.accent]);
  if (pointed) marks.push([pointed, [1, 1, 1]]);
  const shown = pointed ?? chosen;
  paint(painter, {
    scene, camera: memory.camera, layout: data, ink, marks, query: data.query, sharp,
    seeThrough: kept.seeThrough, inset: shown && { sheet: shown, place: insetPlace(memory) },
  });
  placeLabels(memory);
  stage.dataset.frames = memory.frames += 1;
  stage.dataset.still = String(!memory.glide);
}

// What the mouse, else the keyboard or a finger, points at, in words.
function point(memory) {
  const { data, find, cursor, hover } = memory;
  const shown = hover ?? cursor ?? sheetOf(memory, data.chosen);
  const text = shown ? describe(data, shown) : "Point at a sheet, or tap it, to see which head it is.";
  const readout = find(".readout");
  if (readout.textContent !== text) readout.textContent = text; // so it is announced once
  const open = find(".open");
  open.hidden = !cursor;
  if (cursor) open.textContent = `Open layer ${cursor.layer}, head ${cursor.head}`;
  memory.stage.style.cursor = hover ? "pointer" : "grab";
  draw(memory);
}

function describe({ values, chosen }, { layer, head }) {
  const open = String(chosen) === String([layer, head]) ? " (open)" : "";
  return `Layer ${layer}, head ${head}${open}: ${values[layer][head]}`;
}

function look(memory, change) {
  memory.glide = null;
  Object.assign(kept, change);
  kept.pitch = clamp(kept.pitch, LOWEST, HIGHEST);
  kept.zoom = clamp(kept.zoom, ZOOM.least, ZOOM.most);
  draw(memory);
}

function glideTo(memory, view) {
  const goal = { ...VIEWS[view], zoom: 1, pan: [0, 0] };
  if (view === "reset") {
    memory.find(".spacing").value = kept.spacing = USUAL.spacing;
    build(memory);
  }
  if (matchMedia("(prefers-reduced-motion: reduce)").matches) return look(memory, goal);
  const turns = Math.round((kept.yaw - goal.yaw) / 360); // the shorter way round
  const from = { yaw: kept.yaw - 360 * turns, pitch: kept.pitch, zoom: kept.zoom, pan: kept.pan };
  memory.glide = { from, goal, since: null };
  draw(memory);
}

// Moves the view along; false at the end.
function step(glide, now) {
  glide.since ??= now;
  const part = Math.min((now - glide.since) / GLIDE, 1);
  const share = part * part * (3 - 2 * part);
  const between = (a, b) => a + (b - a) * share;
  for (const name of ["yaw", "pitch", "zoom"]) kept[name] = between(glide.from[name], glide.goal[name]);
  kept.pan = glide.goal.pan.map((to, i) => between(glide.from.pan[i], to));
  return part < 1;
}

// Larger or smaller about a point of the canvas, which stays where it is.
function zoomAbout(memory, times, x, y) {
  const zoom = clamp(kept.zoom * times, ZOOM.least, ZOOM.most);
  const [width, height] = memory.camera.size;
  const real = zoom / kept.zoom;
  const about = [x - width / 2, y - height / 2];
  look(memory, { zoom, pan: kept.pan.map((at, i) => about[i] - real * (about[i] - at)) });
  return real !== 1;
}

// The theme's colours as numbers from 0 to 1.
function inkOf(scene) {
  const pen = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const number = (css) => {
    pen.fillStyle = css;
    pen.fillRect(0, 0, 1, 1);
    return [...pen.getImageData(0, 0, 1, 1).data].slice(0, 3).map((part) => part / 255);
  };
  const style = getComputedStyle(scene);
  return { text: number(style.color), accent: number(style.caretColor) };
}
