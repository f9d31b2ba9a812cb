// A picture with a grid of cells on it: outlines the chosen one and lets a person pick another by
// mouse, touch or keyboard. Python says where the cells' edges lie (`ys`, `xs`, in pixels of the
// picture) and which rows and columns can be seen (`rows`, `cols`: first and last). The SVG's
// viewBox is in the same pixels, so nothing need be redrawn when the page is resized or zoomed.

const STEPS = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
const memories = new WeakMap(); // one for each picker on the page: what outlives a rerun
let picked = null; // the name of the one that was picked on last

// Streamlit calls this once when mounted and again whenever the data changed.
export default function picker({ data, parentElement: root, setTriggerValue }) {
  if (!memories.has(root)) memories.set(root, remember(root));
  const memory = memories.get(root);
  const picture = root.querySelector("img");
  // The old picture stays until the new one is there; only then do marks and clicks follow it.
  const another = memory.source && memory.source !== data.picture;
  picture.onload = () => {
    show(data, root, memory, (cell) => setTriggerValue("picked", cell));
    if (another && data.follows && data.follows === picked) bringIntoView(root);
  };
  if (memory.source !== data.picture) picture.src = memory.source = data.picture;
  else if (picture.complete) picture.onload();
  const turn = (memory.turn += 1);
  // Streamlit may end a call that another has already followed.
  return () => turn === memory.turn && memory.labels.disconnect();
}

function remember(root) {
  const labels = new ResizeObserver(() => {
    thinLabels(root);
    hint(root, memories.get(root));
  });
  labels.observe(root.querySelector(".surface"));
  const nothing = { data: null, source: null, chosen: null, cursor: null, hover: null };
  return { ...nothing, labels, turn: 0, revealed: 0 };
}

function show(data, root, memory, send) {
  const surface = root.querySelector(".surface");
  const focused = () => root.activeElement === surface;

  // A cell chosen elsewhere takes the cursor along, unless someone is moving it right now.
  const chosenElsewhere = !same(memory.chosen, data.chosen) && !focused();
  if (chosenElsewhere || !memory.cursor) memory.cursor = data.chosen ?? [0, 0];
  memory.cursor = nearest(data, memory.cursor);
  memory.data = data;
  memory.chosen = data.chosen;
  memory.hover &&= nearest(data, memory.hover);

  const point = () => {
    mark(root, ".hover", data, memory.hover);
    mark(root, ".cursor", data, memory.cursor);
    const how = memory.touch?.on ? "Tap" : memory.hover ? "Click" : "Press Enter";
    const text = describe(data, memory.hover ?? (focused() ? memory.cursor : data.chosen), how);
    const readout = root.querySelector(".readout");
    if (readout.textContent !== text) readout.textContent = text; // so it is announced once
    // By the keyboard only where its cursor is seen.
    const moved = surface.matches(":focus-visible") ? memory.cursor : null;
    if (data.scene) announce(data.name, memory.hover ?? moved);
  };
  const pick = (cell) => {
    if (!data.picks) return;
    if (data.empty?.[cell[0]][cell[1]]) return; // nothing is there
    memory.cursor = cell;
    picked = data.name;
    point();
    send(cell);
  };

  surface.onpointerup = (event) => {
    memory.released = event; // a click says where it was in whole pixels only
    memory.scrubbed = letGo(memory);
  };
  surface.onclick = ({ detail }) => {
    const byPointer = detail > 0; // else by a screen reader, say, which has no place
    if (byPointer && memory.scrubbed) return;
    const cell = byPointer ? cellAt(data, surface, memory.released) : memory.cursor;
    if (cell) pick(cell);
  };
  surface.onpointermove = (event) => {
    if (data.scene && !points(memory, event)) return;
    memory.hover = cellAt(data, surface, event);
    point();
  };
  surface.onpointerleave = () => {
    memory.hover = null;
    point();
  };
  surface.onkeydown = (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key in STEPS) {
      memory.cursor = nearest(data, memory.cursor.map((at, i) => at + STEPS[event.key][i]));
      memory.hover = null; // the keyboard has the word until the mouse moves again
      point();
    } else if (event.key === "Enter" || event.key === " ") {
      if (!event.repeat) pick(memory.cursor);
    } else return;
    event.preventDefault(); // these keys would scroll the page
  };
  surface.onfocus = surface.onblur = point;
  surface.classList.toggle("live", Boolean(data.scene));
  surface.dataset.scene = data.scene;
  if (data.scene) listenToTouch(surface, memory, surface.onpointermove);
  else listenNoMore(surface, memory);

  const [width, height] = data.size;
  root.querySelector(".picker").style.setProperty("--ratio", width / height);
  root.querySelector("svg").setAttribute("viewBox", `0 0 ${width} ${height}`);
  root.querySelector("img").alt = data.alt;
  const reads = data.values ? ` Arrow keys read each ${data.word}'s value.` : "";
  const keys = data.picks ? ` Arrow keys move, Enter picks a ${data.word}.` : reads;
  surface.setAttribute("aria-label", `${data.alt}.${keys}`);
  surface.classList.toggle("picks", data.picks);
  for (const path of root.querySelectorAll("path")) path.setAttribute("d", gridPath(data));
  label(root.querySelector(".row-names"), "top", data.rowNames, data.ys, height);
  label(root.querySelector(".col-names"), "left", data.colNames, data.xs, width);
  thinLabels(root);
  hint(root, memory);
  mark(root, ".chosen", data, data.chosen);
  point();
  if (data.reveal && data.reveal !== memory.revealed) {
    memory.revealed = data.reveal;
    surface.scrollIntoView({ block: "nearest" }); // not at all where it is in view already
    // What was focused is gone with its view: the keyboard goes on here.
    if (document.activeElement === document.body) surface.focus({ preventScroll: true });
  }
}

// What changed by a pick elsewhere is shown, where nothing of it is on the screen: on a phone it may
// lie below. Where some of it is, the page stays as it is.
function bringIntoView(root) {
  picked = null; // once for each pick
  const surface = root.querySelector(".surface");
  const { top, bottom } = surface.getBoundingClientRect();
  if (top < innerHeight && bottom > 0) return;
  const still = matchMedia("(prefers-reduced-motion: reduce)").matches;
  surface.scrollIntoView({ block: "nearest", behavior: still ? "instant" : "smooth" });
}

const same = (a, b) => String(a) === String(b);

function nearest({ rows, cols }, [row, col]) {
  const into = (index, [first, last]) => Math.min(Math.max(index, first), last);
  return [into(row, rows), into(col, cols)];
}

function cellAt(data, surface, { clientX, clientY }) {
  const seen = surface.getBoundingClientRect();
  const x = ((clientX - seen.left) / seen.width) * data.size[0];
  const y = ((clientY - seen.top) / seen.height) * data.size[1];
  // An edge is of the cell that begins there, as `geometry.cell_at` has it, but for rounding.
  const last = (edges, place) => edges.findLastIndex((edge) => edge <= place + 1e-6);
  const cell = [last(data.ys, y), last(data.xs, x)];
  return same(cell, nearest(data, cell)) ? cell : null; // beside the grid there is no cell
}

function mark(root, kind, { ys, xs }, cell) {
  const [row, col] = cell ?? [];
  const [width, height] = [xs[col + 1] - xs[col], ys[row + 1] - ys[row]];
  const group = root.querySelector(kind);
  group.style.display = width > 0 && height > 0 ? "" : "none";
  for (const rect of cell ? group.children : []) {
    for (const [name, value] of Object.entries({ x: xs[col], y: ys[row], width, height })) {
      rect.setAttribute(name, value);
    }
  }
}

function gridPath({ lines, ys, xs }) {
  if (!lines) return "";
  const across = ys.map((y) => `M${xs[0]} ${y}H${xs.at(-1)}`);
  const down = xs.map((x) => `M${x} ${ys[0]}V${ys.at(-1)}`);
  return across.concat(down).join("");
}

function describe(data, cell, how) {
  const { word, rowNames, colNames, cellNames, values, empty, chosen, scene } = data;
  if (!cell && !data.picks) return values ? `Point at a ${word} to read its value.` : "";
  if (!cell) return `Click or tap a ${word}; or arrow keys to move, Enter to pick.`;
  const [row, col] = cell;
  const [down, across] = [rowNames?.[row] ?? `row ${row}`, colNames?.[col] ?? `column ${col}`];
  const place = cellNames?.[row][col] ?? `${down}, ${across}`;
  if (empty?.[row][col]) return `${place}: empty`;
  const value = values ? `: ${values[row][col]}` : "";
  if (same(cell, chosen)) return `${place}${value} (chosen)`;
  if (!scene) return place + value;
  return `${place}${values ? `${value} in the pinned map` : ""}. ${how} to pin.`;
}

function label(strip, side, names, edges, length) {
  const labels = (names ?? []).map((name, i) => {
    const span = document.createElement("span");
    span.textContent = name;
    span.style[side] = `${(50 * (edges[i] + edges[i + 1])) / length}%`;
    return span;
  });
  strip.replaceChildren(...labels);
  strip.style.setProperty("--longest", Math.max(0, ...(names ?? []).map((name) => name.length)));
}

// What is said where the screen has fewer pixels than the picture needs.
function hint(root, { data }) {
  const { width, height } = root.querySelector(".surface").getBoundingClientRect();
  const fewer = data?.least?.some((side, i) => side > [width, height][i] * devicePixelRatio);
  root.querySelector(".hint").textContent = fewer ? data.hint : "";
}

// Hide every label but each second, third, … where they would run into each other.
function thinLabels(root) {
  for (const [strip, place, extent] of [
    [".row-names", "offsetTop", "offsetHeight"],
    [".col-names", "offsetLeft", "offsetWidth"],
  ]) {
    const labels = [...root.querySelectorAll(`${strip} span`)];
    const room = (labels.at(-1)?.[place] - labels[0]?.[place]) / (labels.length - 1);
    const every = Math.ceil((Math.max(...labels.map((span) => span[extent])) + 2) / room) || 1;
    labels.forEach((span, i) => (span.style.visibility = i % every ? "hidden" : ""));
  }
}
