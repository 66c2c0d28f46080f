// What is drawn: balls, other shapes, planes, contacts, joints, the periodic cell. Each takes a frame (data.js) and keeps arrays on the card.
import * as THREE from "./three.js";
import { seen } from "./buried.js";
import * as GLSL from "./shaders.js";

THREE.ColorManagement.enabled = false; // colours are shown as they are written

const RAMP = [ // as in pictures: gravel/view/look.py
  0x313695, 0x3e60aa, 0x5588be, 0x74add1, 0x99cae1, 0xbde2ee, 0xe0f3f8, 0xf5fbd2,
  0xfff5af, 0xfee090, 0xfdbf71, 0xfa9857, 0xf46d43, 0xe14430, 0xc62027, 0xa50026,
];
const PALETTE = [0x66c2a5, 0xfc8d62, 0x8da0cb, 0xe78ac3, 0xa6d854, 0xffd92f, 0xe5c494];
const QUIET = new THREE.Color(0xd9d4ca);
const SPHERE = 0;
const ROUNDING = { 1: 1, 2: 2, 3: 3, 4: 4 }; // ellipsoid, capsule, cylinder, cone; of others the faces are flat
const NEAR = 48; // pixels across: balls that look larger are squares with the true outline
const ENOUGH = 15000; // so many are always drawn
const FEW = 500; // so few balls are squares always

function texture(colours, smooth) {
  const data = new Uint8Array(colours.flatMap((c) => [c >> 16, (c >> 8) & 255, c & 255, 255]));
  const made = new THREE.DataTexture(data, colours.length, 1);
  made.magFilter = made.minFilter = smooth ? THREE.LinearFilter : THREE.NearestFilter;
  made.needsUpdate = true;
  return made;
}
const SCALE = texture(RAMP, true), NUMBERS = texture(PALETTE, false);

// Uniforms that all bodies share.
export const shared = {
  scale: { value: SCALE },
  limits: { value: new THREE.Vector2(0, 1) },
  numbered: { value: false },
  selected: { value: -1 },
  picking: { value: false },
  cut: { value: new THREE.Vector4(0, 0, 0, -1) },
  pixels: { value: 1 },
  projection: { value: new THREE.Matrix4() },
  back: { value: new THREE.Matrix4() },
  window: { value: new THREE.Vector2(1, 1) },
  shrink: { value: 1 }, // of balls and other grains, so that forces are seen between them
};

export function colourBy(numbered, low, high) {
  shared.numbered.value = numbered;
  shared.scale.value = numbered ? NUMBERS : SCALE;
  shared.limits.value.set(low, high);
}

export function colourInWords(numbered, share) {
  const at = numbered ? PALETTE[Math.round(share) % 7] : null;
  if (at !== null) return "#" + at.toString(16).padStart(6, "0");
  return "linear-gradient(to right," + RAMP.map((c) => "#" + c.toString(16).padStart(6, "0")).join(",") + ")";
}

const material = (vertexShader, fragmentShader, uniforms = {}, options = {}) =>
  new THREE.ShaderMaterial({ glslVersion: THREE.GLSL3, vertexShader, fragmentShader, uniforms: { ...shared, ...uniforms }, ...options });

export const isCut = (cut, position, row) =>
  cut.x * position[3 * row] + cut.y * position[3 * row + 1] + cut.z * position[3 * row + 2] < cut.w;

const whole = (mesh) => Object.assign(mesh, { frustumCulled: false });

// New values of an attribute. Its buffer on the card is kept while the length is the same: a new one for each frame would fill the card.
function renew(geometry, name, values, size, kind = THREE.BufferAttribute) {
  const known = geometry.attributes[name];
  if (known && known.array.length === values.length) return void Object.assign(known, { array: values, needsUpdate: true });
  if (known) geometry.dispose();
  geometry.setAttribute(name, new kind(values, size));
}

// Rows of balls that are drawn, with room for all of them on the card.
class Rows {
  constructor(room) {
    this.attribute = new THREE.BufferAttribute(new Uint32Array(room), 1);
    this.rows = new Uint32Array(0);
  }

  set(rows) {
    this.attribute.array.set(rows);
    this.attribute.needsUpdate = true;
    this.rows = rows;
    return this;
  }
}

// --- balls: points where they are small, squares where they are near. Points take all bodies' arrays as they are; an index says which.
export class Balls {
  constructor(scene) {
    const vertex = GLSL.pointVertex, largest = { largest: { value: NEAR }, swell: { value: 1 } };
    this.swell = largest.swell;
    this.exact = material(vertex, GLSL.pointFragment(true), largest);
    this.quick = material(vertex, GLSL.pointFragment(false), largest);
    this.points = whole(new THREE.Points(new THREE.BufferGeometry(), this.exact));
    const corners = new THREE.InstancedBufferGeometry();
    corners.setAttribute("position", new THREE.BufferAttribute(new Float32Array([-1, -1, 0, 1, -1, 0, 1, 1, 0, -1, 1, 0]), 3));
    corners.setIndex([0, 1, 2, 0, 2, 3]);
    this.squares = whole(new THREE.Mesh(corners, material(GLSL.squareVertex, GLSL.squareFragment)));
    scene.add(this.points, this.squares);
    this.rows = this.drawn = new Uint32Array(0);
    this.near = [];
  }

  setLayout(bodies) {
    this.bodies = bodies;
    const rows = [];
    for (let k = 0; k < bodies.kind.length; k++) if (bodies.kind[k] === SPHERE) rows.push(k);
    this.rows = Uint32Array.from(rows);
    this.largest = this.rows.reduce((most, row) => Math.max(most, bodies.drawn[row]), 0);
    this.points.geometry.dispose();
    this.points.geometry = new THREE.BufferGeometry();
    this.points.geometry.setAttribute("radius", new THREE.BufferAttribute(bodies.drawn, 1));
    this.all = new Rows(rows.length).set(this.rows);
    this.outer = new Rows(rows.length);
  }

  setFrame(frame) {
    this.position = frame.position;
    this.box = null; // of all of them, found when it is needed
    renew(this.points.geometry, "position", frame.position, 3);
    this.choose();
  }

  setValues(values) {
    this.value = values;
    renew(this.points.geometry, "value", values, 1);
    this.near = null;
  }

  // which balls are drawn: those that are not cut away; while the picture moves, without those that are hidden from every side
  choose() {
    const cut = shared.cut.value;
    const cutting = cut.lengthSq() > 0 && (cut.x || cut.y || cut.z);
    if (cutting) this.all.set(this.rows.filter((row) => !isCut(cut, this.position, row)));
    else if (this.all.rows !== this.rows) this.all.set(this.rows);
    this.knowsOuter = false; // found when it is needed
    this.near = null;
  }

  outerOnes() {
    if (!this.knowsOuter) this.outer.set(mixed(seen(this.all.rows, this.position, this.bodies.drawn)));
    this.knowsOuter = true;
    return this.outer;
  }

  // before each picture: near balls become squares; share 1: all are drawn, else that share of the outer ones
  aim(camera, share) {
    const index = share < 1 ? this.outerOnes() : this.all, count = index.rows.length, few = count <= FEW;
    share = Math.min(Math.max(share, ENOUGH / count), 1);
    if (this.drawn !== index.rows) this.near = null;
    this.drawn = index.rows;
    const hidden = shared.shrink.value < 0.01;
    this.points.visible = !few && !hidden;
    this.points.geometry.setIndex(index.attribute);
    this.swell.value = shared.shrink.value * (share < 0.9 ? 1 / Math.sqrt(share) : 1); // fewer, but larger, so that they still hide what is behind them
    this.points.geometry.setDrawRange(0, Math.ceil(share * count));
    const reach = few ? Infinity : (2 * shared.pixels.value) / NEAR;
    if (few && this.near) return;
    this.near = few ? this.drawn : this.nearRows(camera, reach);
    this.fillSquares();
  }

  nearRows(camera, reach) {
    const { x, y, z } = camera.position, p = this.position, radius = this.bodies.drawn, found = [];
    if (this.emptyWithin(camera, reach * this.largest)) return found;
    for (const row of this.drawn) {
      const dx = p[3 * row] - x, dy = p[3 * row + 1] - y, dz = p[3 * row + 2] - z, r = reach * radius[row];
      if (dx * dx + dy * dy + dz * dz < r * r) found.push(row);
    }
    return found;
  }

  emptyWithin(camera, reach) {
    if (!this.box) this.box = new THREE.Box3().setFromArray(this.position);
    return this.box.distanceToPoint(camera.position) > reach && this.drawn.length > FEW * 10;
  }

  fillSquares() {
    const n = this.near.length, geometry = this.squares.geometry;
    if (!geometry.attributes.place || geometry.attributes.place.count < n) {
      const room = Math.max(64, Math.ceil(1.5 * n));
      geometry.dispose(); // buffers on the card have the old length
      geometry._maxInstanceCount = room; // three.js looks it up once
      for (const [name, size] of [["place", 3], ["radius", 1], ["value", 1], ["number", 1]])
        geometry.setAttribute(name, new THREE.InstancedBufferAttribute(new Float32Array(room * size), size));
    }
    const { place, radius, value, number } = geometry.attributes;
    for (let k = 0; k < n; k++) {
      const row = this.near[k];
      place.array.set(this.position.subarray(3 * row, 3 * row + 3), 3 * k);
      radius.array[k] = shared.shrink.value * this.bodies.drawn[row];
      value.array[k] = this.value ? this.value[row] : 0;
      number.array[k] = row;
    }
    for (const attribute of [place, radius, value, number]) attribute.needsUpdate = true;
    geometry.instanceCount = n;
    this.squares.visible = n > 0 && shared.shrink.value >= 0.01;
  }
}

// The same rows in another order, always the same: a share of them is then spread over all of space.
function mixed(rows) {
  const result = rows.slice();
  let state = 12345;
  for (let k = result.length - 1; k > 0; k--) {
    state = (1103515245 * state + 12345) % 2147483648;
    const other = state % (k + 1), kept = result[k];
    result[k] = result[other];
    result[other] = kept;
  }
  return result;
}

// --- other shapes: one instanced surface for each kind and geometry, solid or translucent
export class Solids {
  constructor(scene, load) {
    this.scene = scene;
    this.load = load; // (kind, geometry) -> promise of a surface
    this.groups = [];
    this.surfaces = new Map();
    this.opacity = 0.22;
    this.walls = "auto"; // or "solid", "translucent", "hidden"
  }

  // the groups of a layout: their surfaces may have to be asked for
  async groupsOf(bodies) {
    const sorted = new Map();
    bodies.solid.forEach((row, k) => {
      const sheer = bodies.translucent[row], wall = !bodies.movable[row] || sheer;
      const key = `${bodies.kind[row]} ${bodies.geometry[k]} ${wall ? 1 : 0} ${sheer}`;
      if (!sorted.has(key)) sorted.set(key, []);
      sorted.get(key).push(k);
    });
    return Promise.all([...sorted].map(([key, places]) => this.makeGroup(key.split(" ").map(Number), places)));
  }

  setLayout(bodies, groups) {
    const sizes = bodies.radius.filter((_, k) => bodies.movable[k]).sort();
    this.large = 4 * sizes[sizes.length >> 1]; // parts of machines keep their size
    for (const group of this.groups) this.scene.remove(group.mesh), group.mesh.geometry.dispose();
    this.bodies = bodies;
    this.groups = groups;
    for (const group of groups) this.scene.add(group.mesh);
    this.restyle();
  }

  async makeGroup([kind, number, wall, sheer], places) {
    const name = number < 0 ? `kind ${kind}` : `geometry ${number}`;
    if (!this.surfaces.has(name)) this.surfaces.set(name, this.load(kind, number));
    const surface = await this.surfaces.get(name), geometry = new THREE.InstancedBufferGeometry();
    for (const [attribute, values] of Object.entries(attributesOf(surface))) geometry.setAttribute(attribute, values);
    if (surface.triangles) geometry.setIndex(new THREE.BufferAttribute(surface.triangles, 1));
    for (const [attribute, size] of [["place", 3], ["turn", 4], ["size", 4], ["value", 1], ["number", 1]])
      geometry.setAttribute(attribute, new THREE.InstancedBufferAttribute(new Float32Array(places.length * size), size));
    const own = { wall: { value: wall > 0 }, opacity: { value: 1 }, quiet: { value: QUIET }, rounding: { value: ROUNDING[kind] || 0 } };
    const sloped = Boolean(surface.normal);
    const vertex = number < 0 ? GLSL.templateVertex(sloped) : GLSL.surfaceVertex;
    const style = material(vertex, GLSL.solidFragment(sloped), own, { side: THREE.DoubleSide });
    return { mesh: whole(new THREE.Mesh(geometry, style)), places, wall, sheer };
  }

  restyle() {
    for (const { mesh, wall, sheer } of this.groups) {
      const translucent = wall && (this.walls === "translucent" || (this.walls === "auto" && sheer));
      mesh.visible = !(wall && this.walls === "hidden");
      mesh.material.uniforms.opacity.value = translucent ? this.opacity : 1;
      mesh.material.transparent = Boolean(translucent);
      mesh.material.depthWrite = !translucent;
      mesh.material.side = translucent ? THREE.FrontSide : THREE.DoubleSide;
      mesh.renderOrder = translucent ? 2 : 0;
      mesh.userData.sheer = translucent;
    }
  }

  setFrame(frame) {
    this.frame = frame;
    const { solid, size } = this.bodies, cut = shared.cut.value, cutting = cut.x || cut.y || cut.z;
    for (const group of this.groups) {
      const a = group.mesh.geometry.attributes;
      let n = 0;
      for (const k of group.places) {
        const row = solid[k];
        if (!group.wall && cutting && isCut(cut, frame.position, row)) continue;
        a.place.array.set(frame.position.subarray(3 * row, 3 * row + 3), 3 * n);
        a.turn.array.set(frame.turn.subarray(4 * k, 4 * k + 4), 4 * n);
        const shrink = group.wall || this.bodies.radius[row] > this.large ? 1 : (shared.shrink.value * this.bodies.drawn[row]) / this.bodies.radius[row];
        for (let s = 0; s < 4; s++) a.size.array[4 * n + s] = shrink * size[4 * k + s];
        a.value.array[n] = this.value ? this.value[row] : 0;
        a.number.array[n++] = row;
      }
      for (const name of ["place", "turn", "size", "value", "number"]) a[name].needsUpdate = true;
      group.mesh.geometry.instanceCount = n;
    }
  }

  setValues(values) {
    this.value = values;
    if (this.frame) this.setFrame(this.frame);
  }
}

function attributesOf(surface) {
  if (surface.corner)
    return { corner: new THREE.BufferAttribute(surface.corner, 3), slope: new THREE.BufferAttribute(surface.normal, 3), position: new THREE.BufferAttribute(surface.corner, 3) };
  const buffer = new THREE.InterleavedBuffer(surface.weights, 12);
  const rows = ["weightX", "weightY", "weightZ"].map((name, k) => [name, new THREE.InterleavedBufferAttribute(buffer, 4, 4 * k)]);
  const slopes = surface.normal ? { slope: new THREE.BufferAttribute(surface.normal, 3) } : {};
  return { ...Object.fromEntries(rows), ...slopes, position: new THREE.InterleavedBufferAttribute(buffer, 3, 0) };
}

// --- lines: contacts, springs, joints, axes of bodies, the cell
export class Lines {
  constructor(scene) {
    const ribbon = new THREE.InstancedBufferGeometry();
    ribbon.setAttribute("position", new THREE.BufferAttribute(new Float32Array([0, -1, 0, 1, -1, 0, 1, 1, 0, 0, 1, 0]), 3));
    ribbon.setIndex([0, 1, 2, 0, 2, 3]);
    this.thickness = { value: 1 };
    this.mesh = whole(new THREE.Mesh(ribbon, material(GLSL.lineVertex, GLSL.lineFragment, { thickness: this.thickness }, { side: THREE.DoubleSide })));
    this.mesh.visible = false;
    scene.add(this.mesh);
  }

  // start, end (n x 3), width (n) as a share of the thickness, tint (n x 3)
  set(start, end, width, tint) {
    const geometry = this.mesh.geometry, n = width.length;
    for (const [name, values, size] of [["start", start, 3], ["end", end, 3], ["width", width, 1], ["tint", tint, 3]])
      renew(geometry, name, values, size, THREE.InstancedBufferAttribute);
    geometry.instanceCount = n;
    geometry._maxInstanceCount = n;
    this.mesh.visible = n > 0;
  }
}

// contacts from a force on, the strongest first; those that slide are orange. What is cut away has none.
export function contactArrays(found, threshold) {
  const start = [], end = [], width = [], tint = [], top = found.force[0] || 1, cut = shared.cut.value, cutting = cut.x || cut.y || cut.z;
  for (let k = 0; k < found.force.length && found.force[k] >= threshold; k++) {
    if (cutting && (isCut(cut, found.start, k) || isCut(cut, found.end, k))) continue;
    for (let a = 0; a < 3; a++) start.push(found.start[3 * k + a]), end.push(found.end[3 * k + a]);
    width.push(Math.max(found.force[k] / top, 0.03));
    tint.push(...(found.sliding[k] ? [0.85, 0.33, 0.1] : [0.12, 0.2, 0.45]));
  }
  return [start, end, width, tint].map((values) => new Float32Array(values));
}

// the axes of bodies, red, green and blue: x, y, z in their frames. ``places``: (n x 3), ``turns``: quaternions (n x 4), ``lengths``: (n)
const AXES = [[0.85, 0.1, 0.1], [0.1, 0.6, 0.15], [0.1, 0.3, 0.9]];

export function frameArrays(places, turns, lengths) {
  const count = lengths.length, start = new Float32Array(9 * count), end = start.slice(), tint = start.slice(), turn = new THREE.Quaternion();
  for (let k = 0; k < count; k++) {
    turn.set(turns[4 * k + 1], turns[4 * k + 2], turns[4 * k + 3], turns[4 * k]);
    const place = new THREE.Vector3().fromArray(places, 3 * k);
    AXES.forEach((colour, a) => {
      const along = new THREE.Vector3().setComponent(a, lengths[k]).applyQuaternion(turn).add(place), at = 9 * k + 3 * a;
      start.set(place.toArray(), at), end.set(along.toArray(), at), tint.set(colour, at);
    });
  }
  return [start, end, new Float32Array(3 * count).fill(1), tint];
}

// joints as ticks along their axes with a link between their two points; springs as zigzags
export function jointArrays(frame, length) {
  const start = [], end = [], width = [], tint = [];
  const add = (a, b, w, c) => (start.push(a.x, a.y, a.z), end.push(b.x, b.y, b.z), width.push(w), tint.push(...c));
  const at = (array, k) => new THREE.Vector3().fromArray(array, 3 * k);
  for (let k = 0; k < (frame.joint_kind || []).length; k++) {
    const a = at(frame.joint_a, k), b = at(frame.joint_b, k), axis = at(frame.joint_axis, k);
    if (frame.joint_kind[k]) zigzag(a, b, length, (p, q) => add(p, q, 0.5, [0.1, 0.45, 0.3]));
    else {
      add(a.clone().addScaledVector(axis, -length), a.clone().addScaledVector(axis, length), 1, [0.75, 0.1, 0.35]);
      if (a.distanceTo(b) > 0.05 * length) add(a, b, 0.5, [0.75, 0.1, 0.35]);
    }
  }
  return [start, end, width, tint].map((values) => new Float32Array(values));
}

function zigzag(a, b, length, add) {
  const along = b.clone().sub(a), turns = 14, side = new THREE.Vector3(0, 0, 1).cross(along);
  if (side.lengthSq() < 1e-12 * along.lengthSq()) side.set(1, 0, 0);
  side.normalize().multiplyScalar(0.35 * length);
  let last = a;
  for (let k = 1; k <= turns; k++) {
    const next = a.clone().addScaledVector(along, k / turns);
    if (k > 1 && k < turns) next.addScaledVector(side, k % 2 ? 1 : -1);
    add(last, next);
    last = next;
  }
}

// the edges of a periodic cell; of a sheared one the upper side is shifted
export function cellArrays(low, high, { tilt, direction, gradient }, colour) {
  const start = [], end = [];
  const corner = (k) => [0, 1, 2].map((a) => ((k >> a) & 1 ? high[a] : low[a]) + (a === direction && (k >> gradient) & 1 ? tilt : 0));
  for (let k = 0; k < 8; k++)
    for (let a = 0; a < 3; a++)
      if (!((k >> a) & 1)) start.push(...corner(k)), end.push(...corner(k | (1 << a)));
  const n = start.length / 3;
  return [new Float32Array(start), new Float32Array(end), new Float32Array(n).fill(0.3), new Float32Array(Array(n).fill(colour).flat())];
}

// --- planes: a disc that fades, with a grid; where other planes bound it, the polygon between them with its edges
const round = (length) => [1, 2, 5].map((digit) => digit * 10 ** Math.floor(Math.log10(length))).filter((x) => x <= length).pop();
const vectorAt = (array, k) => new THREE.Vector3().fromArray(array, 3 * k);
const EDGE = [0.6, 0.59, 0.57];

export class Planes {
  constructor(scene) {
    this.scene = scene;
    this.discs = [];
    this.fills = [];
    this.edges = new Lines(scene);
    this.known = "";
  }

  get meshes() {
    return [...this.discs, ...this.fills, this.edges.mesh];
  }

  get shown() {
    return [...this.discs, ...this.fills].filter((mesh) => mesh.visible).length;
  }

  setFrame(frame, bounds, visible) {
    const count = frame.plane_position.length / 3, key = [frame.plane_position, frame.plane_normal, ...bounds.min, ...bounds.max, visible].join();
    if (key === this.known) return; // nothing has moved
    this.known = key;
    while (this.discs.length < count) this.discs.push(this.makeDisc()), this.fills.push(this.makeFill());
    const planes = Array.from({ length: count }, (_, k) => ({ point: vectorAt(frame.plane_position, k), normal: vectorAt(frame.plane_normal, k) }));
    const box = boxWithin(planes, bounds), panels = planes.map((plane) => panelOf(plane, planes, box));
    const centre = bounds.getCenter(new THREE.Vector3()), cell = round(0.09 * bounds.getSize(new THREE.Vector3()).length());
    this.discs.forEach((disc, k) => {
      const panel = panels[k], bounded = panel && panel.bounded;
      disc.visible = Boolean(visible && panel && !bounded);
      this.fills[k].visible = Boolean(visible && bounded && panel.corners.length);
      if (disc.visible) placeDisc(disc, planes[k], centre, CELLS * cell);
      if (this.fills[k].visible) fillPolygon(this.fills[k].geometry, panel.corners);
    });
    this.drawEdges(panels.filter((panel) => panel.bounded), visible, 0.0025 * bounds.getSize(new THREE.Vector3()).length());
  }

  drawEdges(panels, visible, thickness) {
    const start = panels.flatMap(({ corners }) => corners), end = panels.flatMap(({ corners }) => [...corners.slice(1), ...corners.slice(0, 1)]);
    this.edges.thickness.value = thickness;
    const flat = (points) => Float32Array.from(points.flatMap((p) => p.toArray())), n = visible ? start.length : 0;
    this.edges.set(flat(start.slice(0, n)), flat(end.slice(0, n)), new Float32Array(n).fill(1), Float32Array.from(Array(n).fill(EDGE).flat()));
  }

  style(colour, options = {}) {
    return material(GLSL.planeVertex, GLSL.planeFragment, { quiet: { value: new THREE.Color(colour) } }, options);
  }

  makeDisc() {
    const disc = whole(new THREE.Mesh(discGeometry(), this.style(0xe7e4de, BEHIND)));
    disc.grid = whole(new THREE.LineSegments(gridGeometry(), this.style(0xc9c5bc)));
    disc.renderOrder = disc.grid.renderOrder = 1; // after the bodies, so that what they hide costs nothing
    this.scene.add(disc);
    disc.add(disc.grid);
    return disc;
  }

  makeFill() {
    const fill = whole(new THREE.Mesh(new THREE.BufferGeometry(), this.style(0xefeeeb, BEHIND)));
    fill.renderOrder = 1;
    this.scene.add(fill);
    return fill;
  }

  // before each picture: a grid that is seen from below is not drawn, nor those of walls
  aim(camera) {
    const up = new THREE.Vector3();
    for (const disc of this.discs) {
      up.set(0, 0, 1).applyQuaternion(disc.quaternion);
      disc.grid.visible = up.z > 0.5 && up.dot(camera.position) > up.dot(disc.position); // walls have none
    }
  }
}

const BEHIND = { polygonOffset: true, polygonOffsetFactor: 1, polygonOffsetUnits: 4 }; // of lines that lie on it

function placeDisc(disc, { point, normal }, centre, size) {
  disc.position.copy(centre).addScaledVector(normal, normal.dot(point) - normal.dot(centre));
  disc.quaternion.setFromUnitVectors(new THREE.Vector3(0, 0, 1), normal);
  disc.scale.setScalar(size);
}

function fillPolygon(geometry, corners) {
  renew(geometry, "position", Float32Array.from(corners.flatMap((p) => p.toArray())), 3);
  renew(geometry, "strength", new Float32Array(corners.length).fill(1), 1);
  geometry.setIndex(corners.slice(2).flatMap((_, k) => [0, k + 1, k + 2]));
}

// The part of a plane near the bodies, as in pictures (gravel/view/floor.py): a large square, cut by the other planes; a wall ends a little
// beyond the bodies. It is bounded if nothing is left of the square's own corners.
const FLOOR_REACH = 1.6, WALL_REACH = 0.06, NEAR_WALL = 0.75; // of the diagonal

const nearest = ({ point, normal }, place) => place.clone().addScaledVector(normal, point.clone().sub(place).dot(normal));

// the box around the bodies and the walls near them
function boxWithin(planes, bounds) {
  const centre = bounds.getCenter(new THREE.Vector3()), reach = NEAR_WALL * bounds.getSize(new THREE.Vector3()).length(), box = bounds.clone();
  for (const place of planes.map((plane) => nearest(plane, centre))) if (place.distanceTo(centre) < reach) box.expandByPoint(place);
  return box;
}

function panelOf(plane, planes, bounds) {
  const { normal } = plane, diagonal = bounds.getSize(new THREE.Vector3()).length(), reach = FLOOR_REACH * diagonal;
  const middle = nearest(plane, bounds.getCenter(new THREE.Vector3()));
  const u = Math.abs(normal.x) < 0.9 ? new THREE.Vector3(1, 0, 0) : new THREE.Vector3(0, 1, 0);
  u.addScaledVector(normal, -u.dot(normal)).normalize();
  const v = normal.clone().cross(u);
  const square = [[-1, -1], [1, -1], [1, 1], [-1, 1]].map(([a, b]) => middle.clone().addScaledVector(u, a * reach).addScaledVector(v, b * reach));
  let corners = square;
  for (const other of planes) if (other !== plane) corners = cutPolygon(corners, other.normal, other.normal.dot(other.point));
  if (normal.z <= 0.9)
    for (let k = 0; k < 6; k++) {
      const side = k % 2 ? 1 : -1, axis = new THREE.Vector3().setComponent(k >> 1, side);
      corners = cutPolygon(corners, axis, axis.dot(side < 0 ? bounds.max : bounds.min) - WALL_REACH * diagonal);
    }
  return { corners, bounded: !corners.some((corner) => square.some((end) => corner.distanceTo(end) < 1e-6 * reach)) };
}

// The part of a convex polygon with n·x >= offset.
function cutPolygon(corners, normal, offset) {
  const kept = [], height = corners.map((corner) => normal.dot(corner) - offset);
  corners.forEach((b, k) => {
    const before = (k + corners.length - 1) % corners.length, a = corners[before];
    if (height[before] >= 0 !== height[k] >= 0) kept.push(a.clone().lerp(b, height[before] / (height[before] - height[k])));
    if (height[k] >= 0) kept.push(b);
  });
  return kept;
}

const RINGS = [[0, 0.97], [0.4, 0.97], [0.7, 0.6], [1, 0]]; // distance from the middle, strength

function strengthAt(r) {
  const k = RINGS.findIndex(([end]) => end >= r);
  if (k < 1) return k === 0 ? 1 : 0;
  const [[r0, s0], [r1, s1]] = [RINGS[k - 1], RINGS[k]];
  return s0 + ((s1 - s0) * (r - r0)) / (r1 - r0);
}

function discGeometry() {
  const sides = 48, place = [], strength = [], index = [];
  RINGS.forEach(([r, s], ring) => {
    for (let k = 0; k < sides; k++) {
      place.push(r * Math.cos((2 * Math.PI * k) / sides), r * Math.sin((2 * Math.PI * k) / sides), 0);
      strength.push(s);
      const a = ring * sides + k, b = ring * sides + ((k + 1) % sides);
      if (ring) index.push(a - sides, a, b, a - sides, b, b - sides);
    }
  });
  return fading(place, strength).setIndex(index);
}

const CELLS = 12; // of the grid, from the middle to the rim

function gridGeometry() {
  const place = [], strength = [], fade = (x, y) => strengthAt(Math.hypot(x, y));
  for (let line = -CELLS; line <= CELLS; line++)
    for (let k = -CELLS; k < CELLS; k++)
      for (const [x0, y0, x1, y1] of [[line, k, line, k + 1], [k, line, k + 1, line]].map((ends) => ends.map((x) => x / CELLS))) {
        place.push(x0, y0, 0, x1, y1, 0);
        strength.push(fade(x0, y0), fade(x1, y1));
      }
  return fading(place, strength);
}

function fading(place, strength) {
  const geometry = new THREE.BufferGeometry();
  geometry.setAttribute("position", new THREE.BufferAttribute(new Float32Array(place), 3));
  geometry.setAttribute("strength", new THREE.BufferAttribute(new Float32Array(strength), 1));
  return geometry;
}
