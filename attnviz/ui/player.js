// Plays a film whose frames lie side by side in one picture, the atlas: nothing is asked of the
// server while it plays. It starts paused, whatever the visitor's system says about motion, and a
// frame that is opened is told by its number.

const SPEEDS = [["slow", 1], ["medium", 2], ["fast", 3]]; // layers a second; no more than 3 flashes
const memories = new WeakMap(); // one for each player on the page: what outlives a rerun

// Streamlit calls this once when mounted and again whenever the data changed.
export default function player({ data, parentElement: root, setTriggerValue }) {
  const fresh = { at: 0, speed: 2, playing: false, timer: null, turn: 0 };
  if (!memories.has(root)) memories.set(root, fresh);
  const memory = memories.get(root);
  memory.send = (number) => setTriggerValue("picked", number);
  memory.gone = false;
  if (memory.atlas?.src === data.atlas) show(data, root, memory);
  else {
    const atlas = new Image(); // the old film stays until the new one is there
    memory.awaited = atlas;
    atlas.onload = () => {
      if (memory.awaited !== atlas || memory.gone) return;
      memory.atlas = atlas;
      show(data, root, memory);
    };
    atlas.src = data.atlas;
  }
  const turn = (memory.turn += 1);
  return () => {
    if (turn !== memory.turn) return; // Streamlit may end a call that another has already followed
    memory.gone = true;
    clearTimeout(memory.timer);
  };
}

function show(data, root, memory) {
  const find = (name) => root.querySelector(`.${name}`);
  const name = memory.data?.frames[memory.at]?.name;
  const again = data.frames.findIndex((frame) => frame.name === name); // the same layer, if there
  memory.data = data;
  memory.at = again < 0 ? Math.min(memory.at, data.frames.length - 1) : again;
  const last = data.frames.length - 1;

  const go = (number) => {
    memory.at = (number + last + 1) % (last + 1);
    draw(root, memory);
  };
  const halt = () => {
    memory.playing = false;
    clearTimeout(memory.timer);
    say();
  };
  const tick = () => {
    clearTimeout(memory.timer);
    if (!memory.playing || memory.gone) return;
    memory.timer = setTimeout(() => {
      go(memory.at + 1);
      tick();
    }, 1000 / memory.speed);
  };
  const say = () => {
    find("play").textContent = memory.playing ? "Pause" : "Play";
    // Each layer's name would be read aloud over the one before it.
    find("name").setAttribute("aria-live", memory.playing ? "off" : "polite");
  };
  const step = (by) => () => {
    halt();
    go(memory.at + by);
  };

  find("play").onclick = () => {
    memory.playing = !memory.playing;
    say();
    tick();
  };
  find("back").onclick = step(-1);
  find("next").onclick = step(1);
  find("at").max = last;
  find("at").oninput = ({ target }) => {
    halt();
    go(Number(target.value));
  };
  find("open").onclick = () => memory.send(memory.at);
  const speed = find("speed");
  if (!speed.length) speed.append(...SPEEDS.map(([word, rate]) => new Option(word, rate)));
  speed.value = memory.speed;
  speed.onchange = () => {
    memory.speed = Number(speed.value);
    tick();
  };

  const film = find("film");
  film.setAttribute("aria-label", data.alt);
  film.style.setProperty("--ratio", data.ratio);
  find("bar").src = data.bar;
  find("screen").width = data.size[0];
  find("screen").height = data.size[1];
  for (const control of ["play", "back", "next", "at", "speed"]) find(control).disabled = !last;
  strip(root, memory);
  say();
  draw(root, memory);
  tick();
}

// One frame, with all that is said of it.
function draw(root, memory) {
  const { data, at } = memory;
  const { name, numbers, words } = data.frames[at];
  const find = (name) => root.querySelector(`.${name}`);
  paint(find("screen"), memory, at);
  find("screen").setAttribute("aria-label", `${data.alt}: ${name}`);
  find("name").textContent = name;
  find("open").textContent = `Open ${name}`;
  find("words").textContent = words;
  find("bar").alt = `Colour bar from ${numbers[0]} to ${numbers.at(-1)}: ${words}`;
  find("numbers").replaceChildren(...numbers.map((number) => element("span", "", number)));
  find("at").value = at;
  find("at").setAttribute("aria-valuetext", name);
  root.querySelectorAll(".strip button").forEach((button, number) => {
    button.toggleAttribute("data-now", number === at);
  });
}

function paint(canvas, { atlas, data }, number) {
  const [width, height] = data.size;
  const [left, top] = [(number % data.columns) * width, Math.floor(number / data.columns) * height];
  const pen = canvas.getContext("2d");
  pen.imageSmoothingQuality = "high";
  pen.drawImage(atlas, left, top, width, height, 0, 0, canvas.width, canvas.height);
}

// A button for each layer, in order; those that are there already stay, and with them the focus.
function strip(root, memory) {
  const place = root.querySelector(".strip");
  const { frames, size } = memory.data;
  while (place.children.length > frames.length) place.lastChild.remove();
  while (place.children.length < frames.length) {
    const item = element("div", "");
    item.setAttribute("role", "listitem");
    const button = element("button", "");
    button.type = "button";
    button.append(element("span", "of"), element("canvas", ""), element("span", "short"));
    item.append(button);
    place.append(item);
  }
  frames.forEach(({ name, short }, number) => {
    const button = place.children[number].firstChild;
    const canvas = button.querySelector("canvas");
    canvas.width = Math.min(size[0], 320);
    canvas.height = Math.round((canvas.width * size[1]) / size[0]);
    paint(canvas, memory, number);
    button.querySelector(".of").textContent = name;
    button.querySelector(".short").textContent = short;
    button.setAttribute("aria-label", `Open ${name}${short ? `, ${short}` : ""}`);
    button.onclick = () => memory.send(number);
  });
}

function element(kind, name, text = "") {
  const made = document.createElement(kind);
  made.className = name;
  made.textContent = text;
  return made;
}
