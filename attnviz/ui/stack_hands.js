// What a person does with the stack by mouse, touch and keyboard.

const DRAG = 6; // pixels that a finger or a mouse may move while it clicks
const TURN = 180; // degrees for the width of the canvas
const LEAP = 0.2; // of the zoom's logarithm, for one turn of a wheel at most
const ARROWS = { ArrowUp: [1, 0], ArrowDown: [-1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };

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
    } else {
      const turn = TURN / memory.camera.size[0];
      look(memory, { yaw: kept.yaw - turn * x, pitch: kept.pitch + turn * y });
    }
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
      const pixels = event.deltaY * (event.deltaMode ? 20 : 1); // some mice count lines
      // Two fingers on a touchpad come as a wheel with this key, in small steps.
      const by = -pixels * (event.ctrlKey ? 0.01 : 0.002);
      const times = Math.exp(Math.min(Math.max(by, -LEAP), LEAP));
      const zoomed = zoomAbout(memory, times, ...place(event));
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
    memory.tellSeeThrough(target.checked);
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
