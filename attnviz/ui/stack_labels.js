// What stands beside the sheets: names of layers and heads, and the small map in a corner.

const INSET = { part: 0.2, most: 120, edge: 8 }; // of the scene's width, and pixels: the map face-on

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

const CROWDED = 4; // names in the room of one

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
  // Where the layers lie one behind the other a name would seem to be the nearest one's.
  if (thin(labels.layer, layers, 30, 13) > CROWDED) {
    const near = fromFarToNear(labels.layer.map(({ sheet }) => sheet), camera).at(-1);
    for (const { span, sheet } of labels.layer) span.style.visibility = sheet === near ? "" : "hidden";
  }
  thin(labels.head, heads, 26, 13);
}

function thin(named, places, wide, high) {
  const pairs = places.slice(1).map(([x, y], i) => {
    const [across, down] = [Math.abs(x - places[i][0]) / wide, Math.abs(y - places[i][1]) / high];
    return Math.max(across, down);
  });
  const every = Math.max(1, Math.ceil(1 / Math.max(Math.min(...pairs, 1), 0.02)));
  named.forEach(({ span }, i) => (span.style.visibility = i % every ? "hidden" : ""));
  return every;
}
