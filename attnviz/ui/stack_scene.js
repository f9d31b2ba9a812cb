// Where everything in the stack lies, seen from where, and what is under a point: numbers alone,
// without a picture. Joined with the others to one module by `stack.py`.
//
// The world: x runs along the heads, y up through the layers, z towards whoever looks from the
// front. Sheets lie flat; a map's first row is the one farther back. The longer side of a sheet is 1.

const GAP = 0.12; // between sheets of one layer
const RIM = 0.08; // of the slab around them
const LEAST_DEPTH = 0.3; // of a sheet, as far as the space between layers goes
const FLOOR = 2.8; // the picture is so many times as large as a sheet, where the stack is so wide
const AWAY = 5; // from the middle to the eye, in half diagonals of the scene
const PAD = { x: 34, y: 26 }; // pixels for labels on each side

export const LOWEST = 5; // degrees: never so low that the picture vanishes, never upside down
export const HIGHEST = 90;

// `shape`: layers, heads, there ((layer, head) → whether there is one; null: all), aspect (width over
// height of the picture). `spacing`: from one layer to the next, in depths of a sheet.
export function sceneOf({ layers, heads, there, aspect }, spacing) {
  const [wide, deep] = [Math.min(1, aspect), Math.min(1, 1 / aspect)];
  const step = spacing * Math.max(deep, LEAST_DEPTH);
  const slabs = [];
  for (let layer = 0; layer < layers; layer += 1) {
    const y = step * (layer + 1.5);
    const sheets = [];
    for (let head = 0; head < heads; head += 1) {
      if (there && !there[layer][head]) continue;
      const x = (head - (heads - 1) / 2) * (wide + GAP);
      sheets.push({ layer, head, x, y, z: 0, wide, deep });
    }
    if (!sheets.length) continue;
    const [first, last] = [sheets[0].x, sheets.at(-1).x];
    const across = last - first + wide + 2 * RIM;
    slabs.push({ layer, sheets, x: (first + last) / 2, y, z: 0, wide: across, deep: deep + 2 * RIM });
  }
  const row = heads * (wide + GAP) - GAP;
  const times = Math.min(FLOOR, Math.max(1, row / wide));
  const floor = { x: 0, y: 0, z: 0, wide: times * wide, deep: times * deep };
  return { slabs, floor, bounds: boundsOf([floor, ...slabs]) };
}

// The four corners of something flat: from the back left clockwise, as (x, y, z).
export function cornersOf({ x, y, z, wide, deep }) {
  const [left, right, back, front] = [x - wide / 2, x + wide / 2, z - deep / 2, z + deep / 2];
  return [[left, y, back], [right, y, back], [right, y, front], [left, y, front]];
}

function boundsOf(things) {
  const points = things.flatMap(cornersOf);
  const reach = [0, 1, 2].map((axis) => {
    const along = points.map((point) => point[axis]);
    return [Math.min(...along), Math.max(...along)];
  });
  const middle = reach.map(([low, high]) => (low + high) / 2);
  return { points, middle, radius: Math.hypot(...reach.map(([low, high]) => (high - low) / 2)) };
}

const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

// Seen from `yaw` degrees to the right and `pitch` degrees above, all of it in the middle of a
// canvas of `width` × `height` pixels; then `zoom` times as large, and moved by `pan` in pixels.
export function cameraOf(scene, { yaw, pitch, zoom, pan }, width, height) {
  const [turn, tilt] = [yaw, clamp(pitch, LOWEST, HIGHEST)].map((angle) => (angle * Math.PI) / 180);
  const right = [Math.cos(turn), 0, -Math.sin(turn)];
  const up = [-Math.sin(turn) * Math.sin(tilt), Math.cos(tilt), -Math.cos(turn) * Math.sin(tilt)];
  const back = [Math.sin(turn) * Math.cos(tilt), Math.sin(tilt), Math.cos(turn) * Math.cos(tilt)];
  const { points, middle, radius } = scene.bounds;
  const away = AWAY * radius;
  const eye = middle.map((at, axis) => at + away * back[axis]);

  // (x, y) on a plane at distance 1 from the eye, and the distance along the line of sight.
  const seen = (point) => {
    const from = point.map((at, axis) => at - eye[axis]);
    const distance = -dot(from, back);
    return [dot(from, right) / distance, dot(from, up) / distance, distance];
  };
  const flat = points.map(seen);
  const ends = [0, 1].map((axis) => {
    const along = flat.map((point) => point[axis]);
    return [Math.min(...along), Math.max(...along)];
  });
  const room = [Math.max(width - 2 * PAD.x, width / 2), Math.max(height - 2 * PAD.y, height / 2)];
  const fit = Math.min(...ends.map(([low, high], axis) => room[axis] / (high - low)));
  const scale = fit * zoom;
  // From the canvas's upper left corner, y down.
  const origin = [
    width / 2 + pan[0] - (scale * (ends[0][0] + ends[0][1])) / 2,
    height / 2 + pan[1] + (scale * (ends[1][0] + ends[1][1])) / 2,
  ];
  const project = (point) => {
    const [x, y, distance] = seen(point);
    return [origin[0] + scale * x, origin[1] - scale * y, distance];
  };
  const ray = (x, y) => {
    const [a, b] = [(x - origin[0]) / scale, (origin[1] - y) / scale];
    return right.map((_, axis) => a * right[axis] + b * up[axis] - back[axis]);
  };
  return { eye, right, up, back, scale, origin, size: [width, height], project, ray };
}

// The camera as a matrix, column by column, for points (x, y, z, 1).
export function matrixOf({ eye, right, up, back, scale, origin, size }) {
  const [width, height] = size;
  const [shiftX, shiftY] = [(2 * origin[0]) / width - 1, 1 - (2 * origin[1]) / height];
  const row = (vector) => [...vector, -dot(vector, eye)];
  const distance = row(back).map((part) => -part);
  const mixed = (vector, size_, shift) =>
    row(vector).map((part, i) => ((2 * scale) / size_) * part + shift * distance[i]);
  const rows = [mixed(right, width, shiftX), mixed(up, height, shiftY), [0, 0, 0, 0], distance];
  return new Float32Array([0, 1, 2, 3].flatMap((column) => rows.map((each) => each[column])));
}

// Layers in the order in which one hides the other: the farthest in height from the eye first.
export function fromFarToNear(things, camera) {
  const far = ({ y }) => Math.abs(y - camera.eye[1]);
  return [...things].sort((a, b) => far(b) - far(a));
}

// The sheet under a point of the canvas: of those that a line of sight meets, the nearest.
export function sheetAt(scene, camera, x, y) {
  const sight = camera.ray(x, y);
  for (const { sheets } of fromFarToNear(scene.slabs, camera).reverse()) {
    const along = (sheets[0].y - camera.eye[1]) / sight[1];
    if (!(along > 0)) continue;
    const [atX, atZ] = [0, 2].map((axis) => camera.eye[axis] + along * sight[axis]);
    const hit = sheets.find(
      (one) => Math.abs(atX - one.x) <= one.wide / 2 && Math.abs(atZ - one.z) <= one.deep / 2,
    );
    if (hit) return hit;
  }
  return null;
}

// The sheet that lies next: `up` layers above and `on` heads along; where there is none, the nearest
// of that layer. From the last there is nowhere to go.
export function neighbour(scene, { layer, head }, up, on) {
  const at = scene.slabs.findIndex((slab) => slab.layer === layer);
  const { sheets } = scene.slabs[clamp(at + up, 0, scene.slabs.length - 1)];
  if (on) {
    const index = sheets.findIndex((sheet) => sheet.head === head);
    return sheets[clamp(index + on, 0, sheets.length - 1)];
  }
  const far = (sheet) => Math.abs(sheet.head - head);
  return sheets.reduce((best, sheet) => (far(sheet) < far(best) ? sheet : best));
}
