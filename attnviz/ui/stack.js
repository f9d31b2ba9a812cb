// The stack of layers × heads: what a person does with it by mouse, touch and keyboard.

const VIEWS = {
  reset: { yaw: -30, pitch: 28 },
  front: { yaw: 0, pitch: 34 },
  side: { yaw: -68, pitch: 22 },
  above: { yaw: 0, pitch: 90 },
};
const USUAL = { spacing: 0.75, zoom: 1 };
const ZOOM = { least: 0.7, most: 12 };
const DRAG = 6; // pixels that a finger or a mouse may move while it clicks
const TURN = 0.45; // degrees for each pixel
const GLIDE = 350; // milliseconds from one view to another
const ARROWS = { ArrowUp: [1, 0], ArrowDown: [-1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
const INSET = { part: 0.2, most: 120, edge: 8 }; // of the scene's width, and pixels: the map face-on

// How somebody looks at it outlives a change of the view: the next stack is seen the same way.
const kept = { ...VIEWS.reset, ...USUAL, pan: [0, 0], seeThrough: false };
const memories = new WeakMap(); // one for each stack on the page: what outlives a rerun

// Streamlit calls this once when mounted and again whenever the data or the theme changed.
export default function stack({ data, parentElement: root, setTriggerValue }) {
  if (!memories.has(root)) memories.set(root, remember(root));
  const memory = memories.get(root);
  memory.send = ({ layer, head }) => setTriggerValue("opened", [layer, head]);
  memory.ink = inkOf(root.querySelector(".scene"));
  tell(memory, data);
  if (memory.painter) show(memory, data);
  return () => {
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

// The corner in which the fewest sheets would be covered by it.
function insetPlace({ scene, camera, data }) {
  const [width, height] = camera.size;
  const side = Math.min(INSET.most, INSET.part * width);
  const [wide, deep] = [side * Math.min(1, data.aspect), side * Math.min(1, 1 / data.aspect)];
  const [right, bottom] = [width - INSET.edge - wide, height - INSET.edge - deep];
  const corners = [[right, INSET.edge], [right, bottom], [INSET.edge, INSET.edge], [INSET.edge, bottom]];
  const points = scene.slabs.flatMap(({ sheets }) => sheets.flatMap(cornersOf)).map(camera.project);
  const under = ([left, top]) =>
    points.filter(([x, y]) => x > left && x < left + wide && y > top && y < top + deep).length;
  const [left, top] = corners.reduce((best, one) => (under(one) < under(best) ? one : best));
  return { x: left + wide / 2, y: 0, z: top + deep / 2, wide, deep };
}

function labelsOf({ scene, find }) {
  const named = (text, sheet) => {
    const span = document.createElement("span");
    span.textContent = text;
    return { span, sheet };
  };
  const of = { layer: scene.slabs.map((slab) => named(`L${slab.layer}`, slab)), head: [] };
  // A head's name stands behind the highest sheet that it has.
  const heads = new Map();
  for (const { sheets } of scene.slabs) for (const one of sheets) heads.set(one.head, one);
  for (const [head, one] of [...heads].sort(([a], [b]) => a - b)) of.head.push(named(`H${head}`, one));
  find(".labels").replaceChildren(...[...of.layer, ...of.head].map(({ span }) => span));
  return of;
}

// Layers are named beside their outermost corner, heads above the farther edge of their sheet; names
// that would run into each other are left out.
function placeLabels({ labels, camera }) {
  const put = ({ span }, x, y, shift) => {
    span.style.transform = `translate(${x}px, ${y}px) translate(${shift})`;
    return [x, y];
  };
  const layers = labels.layer.map((one) => {
    const corners = cornersOf(one.sheet).map(camera.project);
    const [x, y] = corners.reduce((best, corner) => (corner[0] < best[0] ? corner : best));
    return put(one, x - 5, y, "-100%, -50%");
  });
  const heads = labels.head.map((one) => {
    const [a, b, c, d] = cornersOf(one.sheet).map(camera.project);
    const [p, q] = a[2] + b[2] > c[2] + d[2] - 1e-6 ? [a, b] : [c, d];
    return put(one, (p[0] + q[0]) / 2, (p[1] + q[1]) / 2 - 3, "-50%, -100%");
  });
  thin(labels.layer, layers, 30, 13);
  thin(labels.head, heads, 26, 13);
}

function thin(named, places, wide, high) {
  const pairs = places.slice(1).map(([x, y], i) => {
    const [across, down] = [Math.abs(x - places[i][0]) / wide, Math.abs(y - places[i][1]) / high];
    return Math.max(across, down);
  });
  const every = Math.max(1, Math.ceil(1 / Math.max(Math.min(...pairs, 1), 0.02)));
  named.forEach(({ span }, i) => (span.style.visibility = i % every ? "hidden" : ""));
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

function listen(memory, scene, find) {
  const place = ({ clientX, clientY }) => {
    const { left, top } = scene.getBoundingClientRect();
    return [clientX - left, clientY - top];
  };
  const under = (event) => memory.camera && sheetAt(memory.scene, memory.camera, ...place(event));
  const { touches } = memory;
  const spread = () => {
    const [[ax, ay], [bx, by]] = touches.values();
    return { x: (ax + bx) / 2, y: (ay + by) / 2, apart: Math.hypot(ax - bx, ay - by) || 1 };
  };

  scene.onpointerdown = (event) => {
    if (!memory.camera) return;
    touches.set(event.pointerId, place(event));
    memory.drag = { far: touches.size > 1, from: place(event) };
  };
  scene.onpointermove = (event) => {
    if (!touches.has(event.pointerId)) {
      if (event.pointerType === "touch") return;
      memory.hover = under(event);
      return point(memory);
    }
    const [before, now] = [touches.get(event.pointerId), place(event)];
    const fingers = touches.size > 1 ? spread() : null;
    const [startX, startY] = memory.drag.from;
    memory.drag.far ||= Math.hypot(now[0] - startX, now[1] - startY) > DRAG;
    if (!memory.drag.far) return;
    if (!scene.hasPointerCapture(event.pointerId)) scene.setPointerCapture(event.pointerId);
    touches.set(event.pointerId, now);
    memory.hover = null;
    const [x, y] = [now[0] - before[0], now[1] - before[1]];
    if (fingers) {
      const after = spread();
      zoomAbout(memory, after.apart / fingers.apart, after.x, after.y);
      look(memory, { pan: [kept.pan[0] + after.x - fingers.x, kept.pan[1] + after.y - fingers.y] });
    } else if (event.shiftKey || event.buttons > 1) {
      look(memory, { pan: [kept.pan[0] + x, kept.pan[1] + y] });
    } else look(memory, { yaw: kept.yaw - TURN * x, pitch: kept.pitch + TURN * y });
    point(memory);
  };
  scene.onpointerup = scene.onpointercancel = (event) => {
    const clicked = touches.delete(event.pointerId) && event.type === "pointerup" && !memory.drag.far;
    if (!clicked || event.button !== 0) return;
    const sheet = under(event);
    const again = sheet && sheet === memory.cursor;
    memory.cursor = sheet;
    memory.hover = null;
    if (sheet && (again || event.pointerType !== "touch")) memory.send(sheet);
    point(memory);
  };
  scene.onpointerleave = () => {
    memory.hover = null;
    point(memory);
  };
  scene.oncontextmenu = (event) => event.preventDefault(); // that button moves the stack
  // Two fingers are the stack's; one that goes up or down scrolls the page (stack.css).
  const two = (event) => event.touches.length > 1 && event.preventDefault();
  scene.addEventListener("touchstart", two, { passive: false });
  scene.addEventListener("touchmove", two, { passive: false });
  scene.addEventListener(
    "wheel",
    (event) => {
      const meant = event.ctrlKey || event.metaKey || memory.root.activeElement === scene;
      if (!meant || !memory.camera) return; // the page scrolls
      const zoomed = zoomAbout(memory, Math.exp(-event.deltaY * (event.ctrlKey ? 0.01 : 0.002)), ...place(event));
      if (zoomed || event.ctrlKey) event.preventDefault();
    },
    { passive: false },
  );
  scene.onkeydown = (event) => press(memory, event);

  for (const button of memory.root.querySelectorAll("[data-view]")) {
    button.onclick = () => glideTo(memory, button.dataset.view);
  }
  find(".spacing").oninput = ({ target }) => {
    kept.spacing = Number(target.value);
    build(memory);
    memory.hover = null;
    memory.cursor &&= sheetOf(memory, [memory.cursor.layer, memory.cursor.head]);
  };
  find(".see-through").onchange = ({ target }) => {
    find(".mixed").hidden = !target.checked;
    look(memory, { seeThrough: target.checked });
  };
  find(".open").onclick = () => memory.send(memory.cursor);

  const { canvas } = memory.painter;
  canvas.addEventListener("webglcontextlost", (event) => {
    event.preventDefault(); // else it is never restored
    if (!memory.gone) find(".lost").hidden = false;
  });
  canvas.addEventListener("webglcontextrestored", () => {
    begin(memory.painter);
    if (memory.images) load(memory.painter, memory.images);
    find(".lost").hidden = true;
    draw(memory);
  });
}

function press(memory, event) {
  if (event.ctrlKey || event.altKey || event.metaKey || !memory.scene) return;
  const [up, on] = ARROWS[event.key] ?? [0, 0];
  const [width, height] = memory.camera.size;
  if (event.key in ARROWS && event.shiftKey) {
    look(memory, { yaw: kept.yaw + 10 * on, pitch: kept.pitch + 10 * up });
  } else if (event.key in ARROWS) {
    const from = memory.cursor ?? sheetOf(memory, memory.data.chosen);
    memory.cursor = from ? neighbour(memory.scene, from, up, on) : memory.scene.slabs.at(-1).sheets[0];
    memory.hover = null; // the keyboard has the word until the mouse moves again
    point(memory);
  } else if (event.key === "Enter" || event.key === " ") {
    const sheet = memory.cursor ?? sheetOf(memory, memory.data.chosen);
    if (sheet && !event.repeat) memory.send(sheet);
  } else if (event.key === "+" || event.key === "=") zoomAbout(memory, 1.25, width / 2, height / 2);
  else if (event.key === "-") zoomAbout(memory, 0.8, width / 2, height / 2);
  else if (event.key === "0") glideTo(memory, "reset");
  else return;
  event.preventDefault(); // these keys would scroll the page
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
