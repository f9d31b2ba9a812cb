// What a picker with a live map does more: it says which cell is pointed at, and a finger that is
// held on the picture, or moves sideways on it, points as a mouse does. Moving up and down scrolls.

const HELD = 300; // milliseconds after which a finger that does not move is held
const SIDEWAYS = 8; // pixels

// `cell` is null when nothing is pointed at.
function announce(name, cell) {
  document.dispatchEvent(new CustomEvent("attnviz-point", { detail: { name, cell } }));
}

// Whether a moving pointer points: a mouse always does.
function points(memory, { pointerType, pointerId, clientX, clientY }) {
  const touch = memory.touch;
  if (pointerType !== "touch") return true;
  if (!touch || touch.id !== pointerId) return false;
  const [across, down] = [Math.abs(clientX - touch.x), Math.abs(clientY - touch.y)];
  if (across > SIDEWAYS && across > down) touch.on = true;
  if (across > SIDEWAYS || down > SIDEWAYS) clearTimeout(touch.timer); // it is not held still
  return touch.on;
}

// `hold` is called with the place where a finger was held still.
function listenToTouch(surface, memory, hold) {
  surface.onpointerdown = (event) => {
    if (event.pointerType !== "touch" || !event.isPrimary) return;
    const touch = { id: event.pointerId, x: event.clientX, y: event.clientY, on: false };
    touch.timer = setTimeout(() => {
      touch.on = true;
      hold(event);
    }, HELD);
    memory.touch = touch;
  };
  surface.onpointercancel = () => letGo(memory);
  surface.oncontextmenu = (event) => memory.touch && event.preventDefault(); // of a long press
  // Not passive: a finger that scrubs must not scroll as well.
  memory.still ??= (event) => memory.touch?.on && event.cancelable && event.preventDefault();
  surface.addEventListener("touchmove", memory.still, { passive: false });
}

// Without a live map a finger presses and scrolls as on any picture.
function listenNoMore(surface, memory) {
  letGo(memory);
  surface.onpointerdown = surface.onpointercancel = surface.oncontextmenu = null;
  surface.removeEventListener("touchmove", memory.still);
}

// Gives whether the finger pointed, so that it did not tap.
function letGo(memory) {
  const scrubbed = memory.touch?.on ?? false;
  clearTimeout(memory.touch?.timer);
  memory.touch = null;
  return scrubbed;
}
