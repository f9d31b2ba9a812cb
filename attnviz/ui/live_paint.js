// How one map becomes colours on a picture, step by step as `scale.py`, `heatmap.py` and `colour.py`
// do it, so that the live picture is the one that Python draws of the same patch.

// The values of one asker, NaN where it cannot look; a block's is that of each of its patches.
// Up to `steps.knee` they are equal steps from its lowest value on, then others to its highest.
function mapOf({ low, knee, high, lower, upper, cells }, asker, { grid, pool, steps }) {
  const [rows, cols] = grid;
  const across = Math.ceil(cols / pool);
  const small = (knee[asker] - low[asker]) / steps.knee;
  const large = (high[asker] - knee[asker]) / (steps.all - steps.knee);
  const values = new Float64Array(rows * cols);
  for (let row = 0, at = 0; row < rows; row++) {
    const start = asker * cells + Math.floor(row / pool) * across;
    for (let col = 0; col < cols; col++, at++) {
      const from = start + Math.floor(col / pool);
      const count = lower[from] | (upper[from] << 8);
      const beyond = count - steps.knee;
      const value = beyond > 0 ? knee[asker] + beyond * large : low[asker] + count * small;
      values[at] = count > steps.all ? NaN : Math.fround(value);
    }
  }
  return values;
}

// The values that scales are chosen from: neither blank nor wholly beside the picture.
function drawnOf(values, { grid, rows, cols }) {
  const across = grid[1];
  const held = [];
  for (let row = rows[0]; row <= rows[1]; row++)
    for (let col = cols[0]; col <= cols[1]; col++) {
      const value = values[row * across + col];
      if (value === value) held.push(value);
    }
  return held.length ? held : Array.from(values).filter((value) => value === value);
}

// `look_panel.Look.scale_of`: the two values that get the first and the last colour.
function scaleOf(values, drawn, { fixed, fromZero, clip, constant, sinks }) {
  if (fixed) return fixed;
  let out = Infinity;
  if (sinks) {
    // As `sinks_panel.leave_out_sinks`: what lies above the scale's end is drawn as this end.
    const [, end] = scaleOf(values, drawn, { fromZero, clip, constant });
    out = swallowed(Array.from(values, (value) => Math.min(value, end)), sinks);
  }
  const held = out < Infinity ? Array.from(values).filter((value) => value <= out) : drawn;
  let low = Infinity;
  let high = -Infinity;
  for (const value of held) {
    if (value < low) low = value;
    if (value > high) high = value;
  }
  const level = high - low <= constant * Math.max(Math.abs(low), Math.abs(high));
  if (level) low = high;
  else if (clip) {
    const sorted = Float64Array.from(held).sort();
    [low, high] = [percentile(sorted, 100 - clip), percentile(sorted, clip)];
  }
  return fromZero ? [Math.min(low, 0), Math.max(high, 0)] : [low, high];
}

function percentile(sorted, share) {
  const at = (share / 100) * (sorted.length - 1);
  const below = Math.floor(at);
  const above = Math.min(below + 1, sorted.length - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (at - below);
}

// `sinks.swallowed_by`: above which value the few that leave nothing to see lie; none: Infinity.
function swallowed(values, { far, few, faint }) {
  const held = Array.from(values).filter((value) => value === value);
  const largest = held.reduce((most, value) => Math.max(most, value), -Infinity);
  const mean = held.reduce((sum, value) => sum + value, 0) / held.length;
  if (largest < far * mean || !(largest > 0)) return Infinity;
  const seen = held.filter((value) => value > faint * largest).length;
  return seen > Math.max(1, few * held.length) ? Infinity : faint * largest;
}

// `colour.colourise`: a colour a value, as the four bytes of a pixel; blank is transparent.
function colourOf(palette, [low, high]) {
  return (value) => {
    if (value !== value) return 0;
    const place = low === high ? Number(value > high) : (value - low) / (high - low);
    return palette[Math.min(Math.trunc(Math.min(Math.max(place, 0), 1) * 256), 255)];
  };
}

// `heatmap._along`: which pixels a grid covers from `start` to `end`, and where in it each lies.
function along(count, start, end, length) {
  const inside = [];
  for (let pixel = 0; pixel < length; pixel++)
    if (start <= pixel + 0.5 && pixel + 0.5 < end) inside.push(pixel);
  const last = count * (1 - Number.EPSILON / 2); // rounding must not push it out of the last cell
  const at = inside.map((pixel) => (pixel + 0.5 - start) * (count / (end - start)));
  return { first: inside[0] ?? 0, at: at.map((place) => Math.min(Math.max(place, 0), last)) };
}

// The map's pixels, one colour a patch.
function nearest(values, paint, { down, across, cols }) {
  const colours = Uint32Array.from(values, paint);
  const columns = Uint16Array.from(across.at, Math.floor);
  const wide = columns.length;
  const pixels = new Uint32Array(down.at.length * wide);
  let before = -1;
  down.at.forEach((place, line) => {
    const row = Math.floor(place);
    if (row === before) return pixels.copyWithin(line * wide, (line - 1) * wide, line * wide);
    before = row;
    for (let x = 0; x < wide; x++) pixels[line * wide + x] = colours[row * cols + columns[x]];
  });
  return pixels;
}

// The same with straight lines between the patches' centres; blank patches stay blank.
function bilinear(values, paint, { down, across, rows, cols }) {
  const filled = spread(values, rows, cols);
  const wide = across.at.length;
  const pixels = new Uint32Array(down.at.length * wide);
  const row = new Float64Array(cols);
  const columns = across.at.map((place) => between(place, cols));
  down.at.forEach((place, line) => {
    const [above, below, share] = between(place, rows);
    for (let col = 0; col < cols; col++) {
      const upper = filled[above * cols + col];
      row[col] = upper + (filled[below * cols + col] - upper) * share;
    }
    const own = Math.floor(place) * cols;
    for (let x = 0; x < wide; x++) {
      const [left, right, part] = columns[x];
      const blank = Number.isNaN(values[own + Math.floor(across.at[x])]);
      pixels[line * wide + x] = blank ? 0 : paint(row[left] + (row[right] - row[left]) * part);
    }
  });
  return pixels;
}

function between(place, count) {
  const centred = Math.min(Math.max(place - 0.5, 0), count - 1);
  const before = Math.floor(centred);
  return [before, Math.min(before + 1, count - 1), centred - before];
}

// `colour._spread`: in a blank patch the value of the nearest that has one.
function spread(values, rows, cols) {
  const held = [...values.keys()].filter((at) => values[at] === values[at]);
  if (held.length === values.length) return values;
  return values.map((value, at) => {
    if (value === value) return value;
    const far = (other) =>
      (Math.floor(other / cols) - Math.floor(at / cols)) ** 2 + ((other % cols) - (at % cols)) ** 2;
    return values[held.reduce((best, other) => (far(other) < far(best) ? other : best))];
  });
}
