// Draws the stack with WebGL 2: flat rectangles, the farthest first, so that no depth is kept.
//
// The sheets' values come as one grey picture of all tiles, 0 to 255 along the colour scale, and the
// palette as one of 256 colours: both are made in Python, and here a value only finds its colour.

const CORNERS = `#version 300 es
uniform mat4 camera;
uniform vec3 middle;
uniform vec2 size;
in vec2 corner; // 0 to 1, from the back left
out vec2 at;
void main() {
  at = corner;
  vec2 from = (corner - 0.5) * size;
  gl_Position = camera * vec4(middle.x + from.x, middle.y, middle.z + from.y, 1.0);
}`;

const COLOURS = `#version 300 es
precision highp float;
precision highp int;
uniform int kind; // 0: one colour, 1: a tile of the atlas, 2: the picture
uniform sampler2D atlas, palette, picture;
uniform ivec2 origin; // of the tile, in pixels of the atlas
uniform ivec2 tile; // its width and height
uniform vec4 fill, edge; // colours, not yet multiplied with their opacity
uniform float width; // of the edge, in pixels of the screen
uniform float seeThrough; // 1: the lower a value, the more one sees through it
in vec2 at;
out vec4 colour;

vec4 valueAt(vec2 place) {
  ivec2 cell = clamp(ivec2(floor(place * vec2(tile))), ivec2(0), tile - 1);
  float level = texelFetch(atlas, origin + cell, 0).r;
  vec3 tint = texelFetch(palette, ivec2(int(level * 255.0 + 0.5), 0), 0).rgb;
  float opacity = mix(1.0, 0.05 + 0.95 * sqrt(level), seeThrough);
  return vec4(tint * opacity, opacity);
}

// The mean over what one pixel of the screen covers, so that small sheets do not flicker.
vec4 values(vec2 across, vec2 down) {
  ivec2 steps = ivec2(
    clamp(ceil(length(across * vec2(tile))), 1.0, 4.0),
    clamp(ceil(length(down * vec2(tile))), 1.0, 4.0));
  vec4 sum = vec4(0.0);
  for (int i = 0; i < steps.x; i++) for (int j = 0; j < steps.y; j++) {
    vec2 part = (vec2(i, j) + 0.5) / vec2(steps) - 0.5;
    sum += valueAt(clamp(at + across * part.x + down * part.y, 0.0, 0.9999));
  }
  return sum / float(steps.x * steps.y);
}

void main() {
  vec2 across = dFdx(at), down = dFdy(at);
  colour = vec4(fill.rgb * fill.a, fill.a);
  if (kind == 1) colour = values(across, down);
  if (kind == 2) colour = texture(picture, at);
  vec2 pixels = min(at, 1.0 - at) / max(vec2(length(vec2(across.x, down.x)), length(vec2(across.y, down.y))), 1e-9);
  float near = edge.a * clamp(width + 0.5 - min(pixels.x, pixels.y), 0.0, 1.0);
  colour = colour * (1.0 - near) + vec4(edge.rgb * near, near);
}`;

const NAMES = [
  "camera", "middle", "size", "kind", "atlas", "palette", "picture", "origin", "tile", "fill", "edge",
  "width", "seeThrough",
];
const NOTHING = [0, 0, 0, 0];
const RIM_EDGE = [0.55, 0.58, 0.62, 0.9]; // greys that are seen on any map, in either theme
const SHEET_EDGE = [0.8, 0.82, 0.85, 0.45];
const UNITS = { atlas: 0, palette: 1, picture: 2 };

// Null where the browser has no WebGL 2.
export function painterOn(canvas) {
  const gl = canvas.getContext("webgl2", { antialias: true, alpha: true });
  if (!gl) return null;
  const painter = { gl, canvas, at: null };
  begin(painter);
  return painter;
}

// Everything that lives in the graphics memory, but for the pictures: again after it was lost.
export function begin(painter) {
  const { gl } = painter;
  if (gl.isContextLost()) return;
  const program = gl.createProgram();
  for (const [kind, text] of [[gl.VERTEX_SHADER, CORNERS], [gl.FRAGMENT_SHADER, COLOURS]]) {
    const shader = gl.createShader(kind);
    gl.shaderSource(shader, text);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
  }
  gl.bindAttribLocation(program, 0, "corner");
  gl.linkProgram(program);
  if (!gl.getProgramParameter(program, gl.LINK_STATUS) && !gl.isContextLost()) {
    throw new Error(`The stack's shader was refused: ${gl.getProgramInfoLog(program)}`);
  }
  gl.useProgram(program);
  painter.at = Object.fromEntries(NAMES.map((name) => [name, gl.getUniformLocation(program, name)]));
  for (const [name, unit] of Object.entries(UNITS)) gl.uniform1i(painter.at[name], unit);
  gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
  gl.bufferData(gl.ARRAY_BUFFER, new Float32Array([0, 0, 1, 0, 0, 1, 1, 1]), gl.STATIC_DRAW);
  gl.enableVertexAttribArray(0);
  gl.vertexAttribPointer(0, 2, gl.FLOAT, false, 0, 0);
  gl.enable(gl.BLEND);
  gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  gl.pixelStorei(gl.UNPACK_COLORSPACE_CONVERSION_WEBGL, gl.NONE); // values are numbers, no colours
}

// `images`: atlas, palette and picture, decoded.
export function load({ gl }, images) {
  for (const [name, unit] of Object.entries(UNITS)) {
    gl.activeTexture(gl.TEXTURE0 + unit);
    gl.deleteTexture(gl.getParameter(gl.TEXTURE_BINDING_2D));
    gl.bindTexture(gl.TEXTURE_2D, gl.createTexture());
    const [held, form] = name === "atlas" ? [gl.R8, gl.RED] : [gl.RGBA, gl.RGBA];
    gl.texImage2D(gl.TEXTURE_2D, 0, held, form, gl.UNSIGNED_BYTE, images[name]);
    const smooth = name === "picture";
    if (smooth) gl.generateMipmap(gl.TEXTURE_2D);
    const less = smooth ? gl.LINEAR_MIPMAP_LINEAR : gl.NEAREST;
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, less);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, smooth ? gl.LINEAR : gl.NEAREST);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_WRAP_S, gl.CLAMP_TO_EDGE);
    gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_WRAP_T, gl.CLAMP_TO_EDGE);
  }
}

// One picture of the scene. `layout`: columns and tile of the atlas, heads; `ink`: colours of the
// theme, 0 to 1; `marks`: sheets with an outline, as [sheet, colour]; `sharp`: pixels of the canvas
// for one of the page; `inset`: a sheet shown face-on, and where.
export function paint({ gl, canvas, at }, frame) {
  const { scene, camera, layout, ink, marks, query, sharp, seeThrough, inset } = frame;
  gl.viewport(0, 0, canvas.width, canvas.height);
  gl.clearColor(0, 0, 0, 0);
  gl.clear(gl.COLOR_BUFFER_BIT);
  const draw = (thing, kind, fill, edge, width) => {
    gl.uniform3f(at.middle, thing.x, thing.y, thing.z);
    gl.uniform2f(at.size, thing.wide, thing.deep);
    gl.uniform1i(at.kind, kind);
    gl.uniform4fv(at.fill, fill);
    gl.uniform4fv(at.edge, edge);
    gl.uniform1f(at.width, width * sharp);
    gl.drawArrays(gl.TRIANGLE_STRIP, 0, 4);
  };
  const sheet = (one, place, edge, width) => {
    const index = one.layer * layout.heads + one.head;
    const [rows, cols] = layout.tile;
    gl.uniform2i(at.origin, (index % layout.columns) * cols, Math.floor(index / layout.columns) * rows);
    gl.uniform2i(at.tile, cols, rows);
    draw(place, 1, NOTHING, edge, width);
  };
  const outlined = (place, colour, width) => {
    draw(place, 0, NOTHING, [0, 0, 0, 1], width + 1.5);
    draw(place, 0, NOTHING, [...colour, 1], width);
  };

  gl.uniformMatrix4fv(at.camera, false, matrixOf(camera));
  gl.uniform1f(at.seeThrough, seeThrough ? 1 : 0);
  for (const thing of fromFarToNear([scene.floor, ...scene.slabs], camera)) {
    if (!thing.sheets) {
      draw(thing, 2, NOTHING, [...ink.text, 0.5], 1);
      if (query) outlined(onFloor(thing, query), [1, 1, 1], 1.5);
      continue;
    }
    draw(thing, 0, [...ink.text, 0.08], RIM_EDGE, 1);
    for (const one of thing.sheets) sheet(one, one, SHEET_EDGE, 0.75);
  }
  for (const [one, colour] of marks) outlined(one, colour, 2);
  if (inset) {
    const [width, height] = camera.size;
    gl.uniform1f(at.seeThrough, 0);
    gl.uniformMatrix4fv(at.camera, false, [2 / width, 0, 0, 0, 0, 0, 0, 0, 0, -2 / height, 0, 0, -1, 1, 0, 1]);
    sheet(inset.sheet, inset.place, [...ink.text, 0.5], 1);
  }
}

// The query's patch: (top, left, bottom, right) as parts of the picture.
function onFloor({ x, y, z, wide, deep }, [top, left, bottom, right]) {
  return {
    x: x + wide * ((left + right) / 2 - 0.5),
    y,
    z: z + deep * ((top + bottom) / 2 - 0.5),
    wide: wide * (right - left),
    deep: deep * (bottom - top),
  };
}

// Gives the graphics memory back: a browser has few contexts.
export function end({ gl }) {
  gl.getExtension("WEBGL_lose_context")?.loseContext();
}
