// The page: what the user does, and which frame is shown when. Drawing is in draw.js, what the server sends in data.js.
import * as THREE from "./three.js";
import { Frames, KEPT_BYTES, STEADY, address, ask, askMessage, askOf } from "./data.js";
import { Balls, Lines, Planes, Solids, cellArrays, colourBy, colourInWords, contactArrays, frameArrays, isCut, jointArrays, shared } from "./draw.js";

const $ = (id) => document.getElementById(id);
const VIEWS = { auto: [0.75, -1.25, 0.65], front: [0, -1, 0], left: [-1, 0, 0], top: [0, 0, 1], iso: [1, -1, 0.82] };
const ANGLE = 30; // degrees, of view, from bottom to top
const AHEAD = 3; // frames that are asked for before they are shown
const OUTER = 0.9999; // a share of balls below 1: only those that are not hidden from every side
const QUALITIES = [ // from good to quick, while the picture moves: pixels, whether balls have their true depth, the share of balls
  { ratio: 1, exact: true, share: 1 }, { ratio: 1, exact: true, share: OUTER }, { ratio: 0.75, exact: true, share: OUTER },
  { ratio: 0.5, exact: true, share: OUTER }, { ratio: 0.5, exact: false, share: OUTER }, { ratio: 0.5, exact: false, share: 0.5 },
  { ratio: 0.4, exact: false, share: 0.25 },
];
const SLOW = 44, FAST = 36, AGAIN = 4000; // ms a picture: above it gets coarser, below finer; ms until what was too slow is tried again
const MOST_FRAMES = 5000; // bodies whose axes are drawn
const NARROW = 700; // pixels: in a narrower window the panel is folded at first
const EDGE = 56, SIDE = 16; // pixels that title and time bar take above and below, and what is left free beside the bodies
const REST = 250; // ms without motion until the good picture is drawn

const state = { number: 0, playing: false, clock: 0, colour: "speed", limits: null, own: null, selected: -1, quality: 0, stirred: 0, dirty: true, drawn: 0, ready: false, past: null };
let about, frame, renderer, camera, controls, scene, balls, solids, planes, contactLines, jointLines, cellLines, frameLines, axes, socket, contacts;
const frames = new Frames(), bounds = new THREE.Box3();

// --- the start
start().catch((error) => say(error.message));

async function start() {
  makeWindow();
  about = await (await ask("about")).json();
  askOf(about.source);
  $("title").textContent = about.title;
  document.title = `${about.title} – gravel`;
  fillColours();
  $("forces").disabled = !about.contacts;
  $("forces").parentElement.title = about.contacts ? "" : "this result contains no contacts: run with --contacts";
  $("axes").querySelector("[value=bodies]").disabled = Boolean(about.saved); // it has no turns of balls
  $("slider").max = about.times.length - 1;
  $("speedLabel").hidden = about.live;
  $("slider").ariaLabel = about.live ? "states of the run so far" : "frame";
  $("panel").classList.toggle("folded", window.innerWidth < NARROW);
  listen();
  const asked = new URLSearchParams(location.hash.slice(1));
  await show(asked.get("frame") ? Math.min(Number(asked.get("frame")) || 0, about.times.length - 1) : about.first);
  if (asked.get("camera")) placeCamera(asked.get("camera"));
  say("");
  state.ready = true;
  if (about.live) connect();
  requestAnimationFrame(loop);
}

function makeWindow() {
  if (!document.createElement("canvas").getContext("webgl2")) throw new Error("this browser draws no 3D graphics: the viewer needs WebGL 2, which may have to be allowed in its settings");
  renderer = new THREE.WebGLRenderer({ canvas: $("canvas"), antialias: false, preserveDrawingBuffer: true, powerPreference: "high-performance" });
  renderer.outputColorSpace = THREE.LinearSRGBColorSpace;
  scene = new THREE.Scene();
  scene.background = new THREE.Color(0xffffff);
  camera = new THREE.PerspectiveCamera(ANGLE, 1, 0.01, 1000);
  camera.up.set(0, 0, 1);
  controls = new THREE.OrbitControls(camera, renderer.domElement);
  controls.enableDamping = false;
  controls.zoomToCursor = true;
  controls.addEventListener("change", stir);
  planes = new Planes(scene);
  balls = new Balls(scene);
  solids = new Solids(scene, (kind, number) => askMessage(number < 0 ? `template/${kind}` : `surface/${number}`));
  contactLines = new Lines(scene);
  jointLines = new Lines(scene);
  cellLines = new Lines(scene);
  frameLines = new Lines(scene);
  axes = new THREE.AxesHelper(1);
  axes.visible = false;
  scene.add(axes);
}

function fillColours() {
  $("colour").replaceChildren(...about.colours.map((name) => new Option({ energy: "kinetic energy", contacts: "contact count", radius: "size (radius)", rank: "process (rank)" }[name] || name, name)));
  $("colour").value = state.colour = about.colour;
}

// --- frames
let asking = 0;
async function show(number, fresh = false) {
  const mine = ++asking;
  const next = await frames.frame(number, state.colour, fresh);
  const values = await frames.colouring(next, state.colour).catch((error) => (say(error.message, 4000), null));
  if (about.live) keep(next, values);
  if (state.past === null) await present(next, values, number, mine);
  else tellTime();
}

// Draw a frame, unless another was asked for since.
async function present(next, values, number, mine) {
  const changed = !frame || next.layout !== frame.layout, groups = changed ? await solids.groupsOf(next.bodies) : null;
  if (mine !== asking) return;
  if (changed) setLayout(next, groups);
  frame = next;
  state.number = number;
  bounds.isEmpty() && fit("auto", number === about.first ? boxOf({ bounds: about.box }) : boxOf(frame));
  balls.setFrame(frame);
  if (values && values.value.length === next.bodies.id.length) setValues(values); // a live run may have gone on in between
  solids.setFrame(frame);
  planes.setFrame(frame, bounds, $("planes").checked);
  drawJoints();
  drawCell();
  drawFrames();
  if ($("forces").checked) loadContacts();
  tellTime();
  if (state.selected >= 0) tellPicked().catch((error) => say(error.message, 4000));
  stir();
}

function setLayout(next, groups) {
  balls.setLayout(next.bodies);
  solids.setLayout(next.bodies, groups);
  $("facts").textContent = countInWords(next);
  if (frame) bounds.union(boxOf(next)); // the view stays where it is
}

function countInWords(next) {
  const shown = next.bodies.movable.reduce((a, b) => a + b, 0), words = (count) => count.toLocaleString("en");
  if (!next.bodies.sampled) return `${words(shown)} bodies`;
  return `${words(shown)} of ${words(next.moving)} bodies shown (${+((100 * shown) / next.moving).toPrecision(2)} %), drawn ${next.bodies.swell.toFixed(2)} times as large`;
}

const boxOf = (one) => new THREE.Box3(...one.bounds.map((corner) => new THREE.Vector3(...corner)));

function setValues(values) {
  state.words = values.words;
  state.numbered = values.numbered;
  state.names = values.names;
  if (!state.own && !values.numbered) {
    const [low, high] = values.limits, known = state.limits || [low, high];
    state.limits = [Math.min(low, known[0]), Math.max(high, known[1])]; // of all frames so far: colours keep their meaning
  }
  balls.setValues(values.value);
  solids.setValues(values.value);
  tellColours(values);
}

function tellColours(values) {
  const [low, high] = state.own || state.limits || [0, 1];
  colourBy(values.numbered, low, high === low ? low + (Math.abs(low) || 1) : high);
  $("legend").hidden = values.numbered;
  $("numbers").hidden = !values.numbered;
  if (values.numbered) {
    $("numbers").replaceChildren(...Object.entries(values.names).map(([number, name]) => {
      const item = document.createElement("span"), dot = document.createElement("i");
      dot.style.background = colourInWords(true, Number(number));
      item.append(dot, name);
      return item;
    }));
    return;
  }
  $("ramp").style.background = colourInWords(false);
  $("words").textContent = values.words;
  if (document.activeElement !== $("low")) $("low").value = short(low);
  if (document.activeElement !== $("high")) $("high").value = short(high);
}

const short = (x) => (x === 0 ? "0" : Math.abs(x) >= 1e4 || Math.abs(x) < 1e-3 ? x.toExponential(2) : String(+x.toPrecision(3)));

async function loadContacts() {
  const shown = frame;
  try {
    if (state.past !== null) throw new Error("contacts are known of the present state of a run only");
    contacts = await askMessage(`contacts/${shown.number}`);
  } catch (error) {
    contacts = null;
    contactLines.mesh.visible = false;
    if (!about.live || state.past !== null) say(error.message, 3000);
    return;
  }
  if (shown === frame) drawContacts();
}

function drawContacts() {
  const share = Number($("forceShare").value), least = share * (contacts ? contacts.mean : 0);
  $("forceWords").textContent = contacts ? `${short(least)} N (${share} × mean)` : "";
  if (!contacts || !$("forces").checked) return void (contactLines.mesh.visible = false);
  contactLines.thickness.value = 0.9 * typicalRadius();
  contactLines.set(...contactArrays(contacts, least));
  stir();
}

function typicalRadius() {
  const { radius, movable } = frame.bodies;
  const sizes = radius.filter((_, k) => movable[k]).sort();
  return sizes[sizes.length >> 1] || 0.02 * bounds.getSize(new THREE.Vector3()).length();
}

function drawJoints() {
  const has = frame.joint_kind && frame.joint_kind.length && $("joints").checked;
  if (!has) return void (jointLines.mesh.visible = false);
  const length = 0.03 * bounds.getSize(new THREE.Vector3()).length();
  jointLines.thickness.value = 0.25 * length;
  jointLines.set(...jointArrays(frame, length));
}

// axes of the world or of all bodies; those of the one that was picked are drawn with what is told of it
async function drawFrames() {
  const shown = frame, all = $("axes").value === "bodies";
  axes.visible = $("axes").value === "world";
  axes.scale.setScalar(0.3 * bounds.getSize(new THREE.Vector3()).length());
  stir();
  if (!all && state.selected < 0) frameLines.mesh.visible = false;
  if (!all) return;
  try {
    if (state.past !== null) throw new Error("axes of all bodies are known of the present state of a run only");
    const { turn } = await askMessage(`turns/${shown.number}`);
    if (shown === frame && turn.length === 4 * frame.bodies.id.length) drawTurns(framed(), (row) => turn.subarray(4 * row, 4 * row + 4));
  } catch (error) {
    frameLines.mesh.visible = false;
    say(error.message, 3000);
  }
}

function drawPicked(row, turn) {
  if ($("axes").value !== "bodies") turn ? drawTurns([row], () => turn) : (frameLines.mesh.visible = false);
}

// rows of the bodies whose axes are drawn: those that move, the largest if there are too many
function framed() {
  const { id, movable, radius } = frame.bodies, cut = shared.cut.value, cutting = cut.x || cut.y || cut.z;
  const rows = [...id.keys()].filter((row) => movable[row] && !(cutting && isCut(cut, frame.position, row)));
  if (rows.length > MOST_FRAMES) say(`axes of the ${MOST_FRAMES.toLocaleString("en")} largest of ${rows.length.toLocaleString("en")} bodies are drawn`, 4000);
  return rows.length > MOST_FRAMES ? rows.sort((a, b) => radius[b] - radius[a]).slice(0, MOST_FRAMES) : rows;
}

// ``turnOf``: from a row to its quaternion
function drawTurns(rows, turnOf) {
  const places = Float32Array.from(rows.flatMap((row) => [...frame.position.subarray(3 * row, 3 * row + 3)]));
  const turns = Float32Array.from(rows.flatMap((row) => [...turnOf(row)])), lengths = Float32Array.from(rows, (row) => 1.6 * frame.bodies.radius[row]);
  frameLines.thickness.value = 0.12 * typicalRadius();
  frameLines.set(...frameArrays(places, turns, lengths));
  stir();
}

function drawCell() {
  if (!frame.cell) return;
  const [low, high] = [frame.cell.low, frame.cell.high].map((corner, k) => corner.map((x, a) => x ?? [bounds.min, bounds.max][k].getComponent(a)));
  cellLines.thickness.value = 0.002 * bounds.getSize(new THREE.Vector3()).length();
  cellLines.set(...cellArrays(low, high, frame.cell, [0.25, 0.3, 0.35]));
}

// --- the camera
function fit(view, box = boxOf(frame)) {
  bounds.copy(box);
  const middle = bounds.getCenter(new THREE.Vector3()), toward = new THREE.Vector3(...VIEWS[view]).normalize();
  const right = new THREE.Vector3(0, 0, 1).cross(toward);
  if (right.lengthSq() < 1e-9) right.set(1, 0, 0);
  right.normalize();
  const up = toward.clone().cross(right), slope = Math.tan((camera.fov * Math.PI) / 360);
  const { clientWidth: width, clientHeight: height } = renderer.domElement, panel = $("panel").classList.contains("folded") ? 0 : $("panel").offsetWidth + 12;
  const free = (taken, length) => Math.max(1 - (2 * taken) / length, 0.5); // the share of the window that nothing covers
  const tall = slope * free(EDGE, height), wide = slope * (width / height) * free(Math.max(panel, SIDE), width);
  let away = 0;
  for (let k = 0; k < 8; k++) {
    const arm = new THREE.Vector3(...[0, 1, 2].map((a) => ((k >> a) & 1 ? bounds.max : bounds.min).getComponent(a))).sub(middle);
    away = Math.max(away, Math.abs(arm.dot(up)) / tall + arm.dot(toward), Math.abs(arm.dot(right)) / wide + arm.dot(toward));
  }
  camera.up.set(0, 0, 1);
  controls.target.copy(middle);
  camera.position.copy(middle).addScaledVector(toward, away || 1);
  if (view === "top") camera.position.y -= 1e-4 * away;
  controls.update();
  stir();
}

function placeCamera(text) {
  const n = text.split(",").map(Number);
  if (![6, 9, 10].includes(n.length) || n.some((x) => !Number.isFinite(x))) return say(`camera must be 6, 9 or 10 numbers, not ${text}`, 4000);
  if (n.length > 6 && (n[6] || n[7] || n[8] <= 0)) return say("up must be 0,0,1 here", 4000);
  camera.fov = n[9] || ANGLE;
  camera.position.set(n[0], n[1], n[2]);
  controls.target.set(n[3], n[4], n[5]);
  controls.update();
  stir();
}

function cameraText() {
  const places = Math.max(0, 5 - Math.floor(Math.log10(camera.position.distanceTo(controls.target))));
  const digits = (v) => v.toArray().map((x) => +x.toFixed(places)).join(",");
  return `${digits(camera.position)},${digits(controls.target)},0,0,1,${camera.fov}`;
}

// --- pictures: coarser while something moves, as good as can be at rest
function stir() {
  state.stirred = performance.now();
  state.dirty = true;
}

let last = 0;
function loop(now) {
  requestAnimationFrame(loop);
  if (state.playing) advance((now - last) / 1000);
  const between = now - last;
  last = now;
  if (state.dirty) {
    state.dirty = state.fine = false;
    if (between < 2000) adapt(between, now);
    render(QUALITIES[state.quality]);
  } else if (!state.fine && now - state.stirred > REST) {
    render(QUALITIES[0]);
    state.fine = true;
  }
}

let mean = 30;
const tooSlow = []; // by quality: until when it is not tried again, ms
function adapt(between, now) {
  mean = 0.7 * mean + 0.3 * between;
  const finer = state.quality - 1;
  if (mean > SLOW && state.quality < QUALITIES.length - 1) {
    tooSlow[state.quality] = now + AGAIN;
    state.quality = Math.min(state.quality + (mean > 4 * SLOW ? 3 : 1), QUALITIES.length - 1);
    mean = FAST;
  } else if (mean < FAST && finer >= 0 && !(tooSlow[finer] > now)) {
    state.quality = finer;
    mean = FAST;
  }
}

function render({ ratio, exact, share }) {
  const canvas = renderer.domElement, device = Math.min(window.devicePixelRatio || 1, 2) * ratio;
  const width = Math.max(1, Math.floor(canvas.clientWidth * device)), height = Math.max(1, Math.floor(canvas.clientHeight * device));
  if (canvas.width !== width || canvas.height !== height) renderer.setDrawingBufferSize(canvas.clientWidth, canvas.clientHeight, device);
  prepare(width, height, share);
  balls.points.material = exact ? balls.exact : balls.quick;
  renderer.render(scene, camera);
  state.drawn += 1;
}

function prepare(width, height, share) {
  const box = boxOf(frame).union(bounds), away = camera.position.distanceTo(controls.target), size = box.getSize(new THREE.Vector3()).length() || 1;
  const far = camera.position.distanceTo(box.getCenter(new THREE.Vector3())) + 4 * size;
  Object.assign(camera, { aspect: width / height, far, near: Math.max(1e-3 * Math.min(away, size), far * 2e-5) });
  camera.updateProjectionMatrix();
  camera.updateMatrixWorld();
  shared.projection.value.copy(camera.projectionMatrix);
  shared.back.value.copy(camera.projectionMatrixInverse);
  shared.window.value.set(width, height);
  shared.pixels.value = (0.5 * height) / Math.tan((camera.fov * Math.PI) / 360);
  balls.aim(camera, share);
  planes.aim(camera);
}

// --- picking: bodies are drawn once in colours that are their numbers
function pick(x, y) {
  const canvas = renderer.domElement, width = canvas.clientWidth, height = canvas.clientHeight;
  const target = new THREE.WebGLRenderTarget(width, height), pixel = new Uint8Array(4), background = scene.background;
  prepare(width, height, 1);
  const hidden = [...planes.meshes, contactLines.mesh, jointLines.mesh, cellLines.mesh, frameLines.mesh, axes, ...solids.groups.filter((g) => g.mesh.userData.sheer).map((g) => g.mesh)];
  const before = hidden.map((mesh) => mesh.visible);
  hidden.forEach((mesh) => (mesh.visible = false));
  shared.picking.value = true;
  scene.background = null;
  balls.points.material = balls.exact;
  renderer.setRenderTarget(target);
  renderer.setClearColor(0, 0);
  renderer.clear();
  renderer.render(scene, camera);
  renderer.readRenderTargetPixels(target, Math.round(x), height - 1 - Math.round(y), 1, 1, pixel);
  renderer.setRenderTarget(null);
  scene.background = background;
  shared.picking.value = false;
  hidden.forEach((mesh, k) => (mesh.visible = before[k]));
  target.dispose();
  stir();
  return pixel[3] ? pixel[0] + 256 * pixel[1] + 65536 * pixel[2] - 1 : -1;
}

async function select(row) {
  state.selected = row < 0 ? -1 : frame.bodies.id[row];
  shared.selected.value = row;
  $("picked").hidden = row < 0;
  drawFrames();
  if (row >= 0) await tellPicked();
}

async function tellPicked() {
  const row = frame.bodies.id.indexOf(state.selected);
  shared.selected.value = row;
  if (row < 0) return void (($("pickedText").textContent = `body ${state.selected} is not in this frame`), drawPicked(row, null));
  if (about.saved || state.past !== null) return void (tellRows(savedFacts(row)), drawPicked(row, savedTurn(row)));
  const shown = frame, facts = await (await ask(`body/${frame.number}/${state.selected}`)).json(), size = Math.hypot(...facts.velocity);
  if (shown !== frame || facts.id !== state.selected) return; // another is told of by now
  drawPicked(row, facts.quaternion);
  tellRows([
    ["body", `${facts.id}${facts.name ? ` (${facts.name})` : ""}, ${facts.shape}, ${facts.material}${facts.movable ? "" : ", fixed or driven"}`],
    ["position", vector(facts.position, "m")],
    ["velocity", `${vector(facts.velocity, "m/s")} (${short(size)})`],
    ["spin", vector(facts.angular_velocity, "rad/s")],
    ["quaternion", vector(facts.quaternion, "")],
    ["radius, mass", `${short(facts.radius)} m, ${facts.movable ? short(facts.mass) + " kg" : "–"}`],
    ["process", String(facts.rank)],
    ["contacts", facts.contacts ? String(facts.contacts.length) : "not saved"],
    ...(facts.contacts || []).slice(0, 12).map(([other, force, gap, name]) => ["", `with ${other}${name ? ` (${name})` : ""}: ${short(force)} N, gap ${short(gap)} m`]),
  ]);
}

const vector = (values, unit) => `${[...values].map(short).join(", ")} ${unit}`;

// what a page knows of a body without asking: one that was saved, and of an earlier state of a live run
function savedFacts(row) {
  const { id, kind, radius, movable } = frame.bodies;
  return [
    ["body", `${id[row]}, ${about.shapes[kind[row]]}${movable[row] ? "" : ", fixed or driven"}`],
    ["position", vector(frame.position.subarray(3 * row, 3 * row + 3), "m")],
    ["radius", `${short(radius[row])} m`],
    [state.words, state.numbered ? state.names[balls.value[row]] || String(balls.value[row]) : short(balls.value[row])],
  ];
}

// the quaternion of a body in a page that was saved, which has none of balls
function savedTurn(row) {
  const place = frame.bodies.solid.indexOf(row);
  return place < 0 ? null : frame.turn.subarray(4 * place, 4 * place + 4);
}

function tellRows(rows) {
  const table = document.createElement("table");
  for (const [name, words] of rows) table.insertRow().append(...[name, words].map((text) => Object.assign(document.createElement("td"), { textContent: text })));
  $("pickedText").replaceChildren(table);
}

// --- time
function advance(seconds) {
  if (about.live) return;
  const times = about.times, end = times[times.length - 1];
  state.clock = Math.min(state.clock + seconds * Number($("speed").value), end);
  let number = state.number;
  while (number < times.length - 1 && times[number + 1] <= state.clock) number += 1;
  if (number !== state.number && !advance.waiting) {
    advance.waiting = true;
    show(number).catch((error) => (play(false), say(error.message))).finally(() => (advance.waiting = false));
    for (let k = 1; k <= AHEAD && number + k < times.length; k++)
      frames.frame(number + k, state.colour).then((next) => frames.colouring(next, state.colour)).catch(() => {});
  } else if (advance.waiting) state.clock = Math.min(state.clock, times[Math.min(state.number + 2, times.length - 1)]);
  if (number === times.length - 1 && state.number === number) play(false);
}

function play(on) {
  if (about.live) {
    if (state.past !== null) lookAt(states.length - 1);
    return tell(on ? "play" : "pause");
  }
  if (on && state.number >= about.times.length - 1) {
    state.number = 0;
    show(0).catch((error) => say(error.message, 4000));
  }
  state.clock = about.times[state.number];
  state.playing = on;
  $("play").classList.toggle("playing", on);
}

// ``number``: of a frame; of a live run, of a state that was seen, or the next to come
function go(number) {
  if (about.live) return number < states.length ? lookAt(Math.max(0, number)) : tell("single");
  play(false);
  return show(Math.max(0, Math.min(number, about.times.length - 1))).catch((error) => say(error.message, 4000));
}

const place = () => (about.live ? state.past ?? states.length - 1 : state.number);

// of times, so that those of two frames can be told apart
function decimals() {
  const span = about.live ? frame.time / Math.max(frame.step, 1) : (about.times[about.times.length - 1] - about.times[0]) / Math.max(about.times.length - 1, 1);
  return span > 0 ? Math.min(Math.max(3, Math.ceil(-Math.log10(span))), 12) : 3;
}

function tellTime() {
  if (about.live) {
    $("slider").max = states.length - 1;
    $("play").classList.toggle("playing", !states[states.length - 1].frame.paused);
  }
  $("slider").value = place();
  const how = state.past !== null ? ", earlier" : frame.finished ? ", finished" : frame.paused ? ", paused" : "";
  $("clock").textContent = `${frame.time.toFixed(decimals())} s · ${about.live ? `step ${frame.step}${how}` : `frame ${state.number + 1} of ${about.times.length}`}`;
}

// --- a run that goes on
function connect() {
  const place = new URL(address("live"), location.href);
  place.protocol = place.protocol.replace("http", "ws");
  socket = new WebSocket(place);
  socket.onmessage = async (event) => {
    const news = JSON.parse(event.data);
    if (news.reload) return location.reload();
    if (news.changed) await follow();
  };
  socket.onopen = () => (say(""), socket.send("next"));
  socket.onclose = () => {
    if (frame.finished) return;
    say("the run does not respond: it may have ended; this is its last picture");
    setTimeout(connect, 2000);
  };
}

function tell(word) {
  if (socket && socket.readyState === 1) socket.send(word);
}

async function follow() {
  if (follow.busy) return void (follow.again = true);
  follow.busy = true;
  do {
    follow.again = false;
    await show(state.number, true).catch((error) => say(error.message, 4000));
    if (state.past === null) frame.number = state.number += 1; // every state of a live run has a number of its own here
    tell("next");
  } while (follow.again);
  follow.busy = false;
}

// The states of a live run that came here, so that one may look back at them while it goes on; of too many every second is kept.
let states = []; // { frame, colour, values }
function keep(next, values) {
  if (states.length && states[states.length - 1].frame.step === next.step) states.pop(); // the same state once more
  states.push({ frame: next, colour: state.colour, values });
  if (states.reduce((sum, one) => sum + one.frame.bytes, 0) < KEPT_BYTES || states.length < 8) return;
  states = states.filter((_, k) => k % 2 === 0 || k === states.length - 1);
  if (state.past !== null) state.past >>= 1;
}

// Show one of the states that were kept; with the last one the page follows the run again.
async function lookAt(number) {
  const one = states[number], mine = ++asking;
  state.past = number === states.length - 1 ? null : number;
  await present(one.frame, await valuesOf(one), state.number, mine);
}

async function valuesOf({ frame: shown, colour, values }) {
  if (colour === state.colour) return values;
  if (STEADY.includes(state.colour)) return frames.colouring(shown, state.colour).catch(() => null);
  say(`this earlier state was shown by ${colour}: its ${state.colour} is not known any more`, 4000);
  return values && { ...values, value: new Float32Array(values.value.length), words: state.colour, numbered: false, limits: state.limits || [0, 1] };
}

// --- saving
function command() {
  const words = ["gravel picture", quoted(about.path), `--frame ${about.live ? -1 : about.numbers ? about.numbers[state.number] : state.number}`, `--colour ${state.colour}`];
  words.push(`--camera "${cameraText()}"`, `--size ${renderer.domElement.clientWidth}x${renderer.domElement.clientHeight}`);
  const limits = state.own || state.limits;
  if (limits && limits[0] < limits[1] && !state.numbered && !$("forces").checked) words.push(`--limits ${limits.map((x) => +x.toPrecision(7)).join(",")}`);
  if ($("forces").checked) words.push("--forces");
  const cut = shared.cut.value;
  if ($("clip").checked) words.push(`--clip "${[cut.x, cut.y, cut.z, cut.w].map((x) => +x.toPrecision(7)).join(",")}"`);
  return words.join(" ");
}

const quoted = (path) => (/^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`);

function savePicture() {
  render(QUALITIES[0]);
  renderer.domElement.toBlob((blob) => {
    const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: about.title.replace(/\.\w+$/, "") + `-${state.number}.png` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
  tellCommand();
}

function tellCommand() {
  $("commandText").hidden = false;
  $("commandText").value = command();
  $("commandText").select();
}

// --- cutting away
function setClip() {
  const on = $("clip").checked, n = $("clipAxis").value.split(",").map(Number), normal = new THREE.Vector3(...n);
  $("clipOptions").hidden = !on;
  const ends = [bounds.min, bounds.max].map((corner) => normal.dot(corner)), low = Math.min(...ends), high = Math.max(...ends);
  const offset = low + Number($("clipPlace").value) * (high - low);
  shared.cut.value.set(...(on ? [...n, offset] : [0, 0, 0, -1]));
  redraw();
  if (contacts) drawContacts();
  drawFrames();
}

// the same frame once more, with other bodies or sizes
function redraw() {
  balls.choose();
  solids.setFrame(frame);
  stir();
}

// --- what the user does
function listen() {
  $("colour").onchange = () => {
    state.colour = $("colour").value;
    state.limits = state.own = null;
    (state.past === null ? show(state.number) : lookAt(state.past)).catch((error) => say(error.message, 4000));
  };
  for (const name of ["low", "high"]) $(name).onchange = ownLimits;
  $("walls").onchange = () => ((solids.walls = $("walls").value), solids.restyle(), stir());
  $("bodies").onchange = () => ((shared.shrink.value = Number($("bodies").value)), redraw());
  $("planes").onchange = () => (planes.setFrame(frame, bounds, $("planes").checked), stir());
  $("joints").onchange = () => (drawJoints(), stir());
  $("axes").onchange = drawFrames;
  $("forces").onchange = () => {
    $("forceOptions").hidden = !$("forces").checked;
    $("forces").checked ? loadContacts() : drawContacts();
    stir();
  };
  $("forceShare").oninput = drawContacts;
  for (const name of ["clip", "clipAxis"]) $(name).onchange = setClip;
  $("clipPlace").oninput = setClip;
  for (const button of $("views").children) button.onclick = () => fit(button.dataset.view);
  $("save").onclick = savePicture;
  $("command").onclick = tellCommand;
  $("fold").onclick = () => $("panel").classList.toggle("folded");
  $("unpick").onclick = () => select(-1);
  $("first").onclick = () => go(0);
  $("back").onclick = () => go(place() - 1);
  $("forward").onclick = () => go(place() + 1);
  $("play").onclick = () => play(about.live ? states[states.length - 1].frame.paused : !state.playing);
  $("slider").oninput = () => go(Number($("slider").value));
  window.onresize = stir;
  listenToPointer();
  document.onkeydown = (event) => {
    if (["INPUT", "SELECT", "TEXTAREA"].includes(event.target.tagName) && event.target.type !== "range") return;
    const act = { " ": $("play").onclick, ArrowRight: $("forward").onclick, ArrowLeft: $("back").onclick, Home: $("first").onclick, Escape: $("unpick").onclick }[event.key];
    if (act) event.preventDefault(), act();
  };
}

function listenToPointer() {
  let from = null;
  $("canvas").onpointerdown = (event) => (from = [event.clientX, event.clientY]);
  $("canvas").onpointerup = (event) => {
    const still = from && Math.hypot(event.clientX - from[0], event.clientY - from[1]) < 4;
    if (still && event.button === 0) select(pick(event.clientX, event.clientY)).catch((error) => say(error.message, 4000));
  };
}

function ownLimits() {
  const [low, high] = [$("low"), $("high")].map((field) => (field.value.trim() === "" ? NaN : Number(field.value)));
  if (!(low < high)) return say("the lowest value must be below the highest", 3000);
  state.own = [low, high];
  colourBy(false, low, high);
  stir();
}

function say(words, time) {
  $("notice").textContent = words;
  if (time) setTimeout(() => $("notice").textContent === words && ($("notice").textContent = ""), time);
}

// for scripts that look at the page: tests, benches
window.gravel = {
  state, select, pick, fit, go, play, command, cameraText, placeCamera,
  states: () => states.length,
  box: () => [bounds.min.toArray(), bounds.max.toArray()],
  counts: () => ({ drawn: state.drawn, quality: state.quality, balls: balls.drawn.length, near: balls.near ? balls.near.length : 0, lines: contactLines.mesh.visible ? contactLines.mesh.geometry.instanceCount : 0, joints: jointLines.mesh.visible ? jointLines.mesh.geometry.instanceCount : 0, frames: frameLines.mesh.visible ? frameLines.mesh.geometry.instanceCount / 3 : 0, planes: planes.shown }),
  turn: (degrees) => {
    const arm = camera.position.clone().sub(controls.target).applyAxisAngle(new THREE.Vector3(0, 0, 1), (degrees * Math.PI) / 180);
    camera.position.copy(controls.target).add(arm);
    controls.update();
    stir();
  },
  screen: (row) => {
    const p = new THREE.Vector3().fromArray(frame.position, 3 * row).project(camera), canvas = renderer.domElement;
    return [(0.5 + 0.5 * p.x) * canvas.clientWidth, (0.5 - 0.5 * p.y) * canvas.clientHeight];
  },
  fine: () => state.fine === true && performance.now() - state.stirred > REST,
};
