// What the server sends, as typed arrays: see gravel/view/viewer/wire.py for the form of a message. A page that was saved (saved.py) holds
// its messages itself.

const TYPES = { f4: Float32Array, u4: Uint32Array, i4: Int32Array, u1: Uint8Array };
export const KEPT_BYTES = 256e6; // frames that are kept, so that playing again asks for nothing
const WITH_FRAMES = ["speed", "energy"]; // colours that are others in each frame
export const STEADY = ["material", "radius", "body"]; // colours that do not change while the same bodies are there

const always = new URLSearchParams(); // what every request carries
if (new URLSearchParams(location.search).has("token")) always.set("token", new URLSearchParams(location.search).get("token"));
export const address = (path) => (String(always) ? `${path}${path.includes("?") ? "&" : "?"}${always}` : path);

// Which of the server's sources this page shows: it may have gone on to the next before the page has heard of it.
export const askOf = (source) => always.set("source", source);

const held = JSON.parse(document.getElementById("saved")?.textContent || "null"); // path -> element that holds its message

async function unpackedFrom(element) {
  const packed = await fetch("data:application/octet-stream;base64," + document.getElementById(element).textContent);
  return new Response(packed.body.pipeThrough(new DecompressionStream("gzip")));
}

export async function ask(path) {
  if (held) {
    const element = held[path.split("?")[0]];
    if (!element) throw new Error("a saved page does not hold this; gravel view shows all of a result");
    return unpackedFrom(element);
  }
  const response = await fetch(address(path));
  if (!response.ok) throw new Error(await response.text());
  return response;
}

export async function askMessage(path) {
  return unpacked(await (await ask(path)).arrayBuffer());
}

function unpacked(buffer) {
  const length = new DataView(buffer).getUint32(0, true);
  const head = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const message = { ...head, arrays: undefined, bytes: buffer.byteLength };
  for (const [name, [type, shape, offset]] of Object.entries(head.arrays)) {
    const count = shape.reduce((a, b) => a * b, 1);
    message[name] = new TYPES[type](buffer, 4 + length + offset, count);
  }
  return message;
}

// Frames by number, each asked for once, with what they are coloured by; those that were used least are dropped when there are too many.
// A layout is kept as long as a frame has it.
export class Frames {
  constructor() {
    this.layouts = new Map(); // key -> layout, with the values that do not change while the same bodies are there
    this.kept = new Map(); // number -> { promise, values, bytes, layout }
    this.bytes = 0;
    this.lastLayout = "";
  }

  // ``colour``: what it will be coloured by, which then comes with it
  frame(number, colour, fresh = false) {
    if (fresh) this.forget();
    const known = this.kept.get(number);
    if (known) {
      this.kept.delete(number); // the last in the map is the one that was used last
      this.kept.set(number, known);
      return known.promise;
    }
    const made = { values: new Map(), bytes: 0, layout: null };
    made.promise = this.load(number, colour, made);
    this.kept.set(number, made);
    made.promise.catch(() => this.kept.get(number) === made && this.kept.delete(number));
    return made.promise;
  }

  async load(number, colour, made) {
    const known = this.layouts.has(this.lastLayout) ? this.lastLayout : "", with_ = WITH_FRAMES.includes(colour) ? `&colour=${colour}` : "";
    const frame = await askMessage(`frame/${number}?layout=${known}${with_}`);
    if (frame.colouring) made.values.set(colour, Promise.resolve({ value: frame.value, ...frame.colouring }));
    const whole = frame.id || this.layouts.has(frame.layout) ? frame : await askMessage(`layout/${frame.layout}`); // of a saved page
    if (whole.id) this.layouts.set(frame.layout, this.layoutOf(whole));
    frame.bodies = this.layouts.get(frame.layout);
    this.lastLayout = made.layout = frame.layout;
    this.count(made, frame.bytes);
    this.makeRoom();
    return frame;
  }

  // ``drawn``: the radii that are drawn; where not all bodies are shown, those that stand for others are larger than they are
  layoutOf(frame) {
    const layout = { key: frame.layout, values: new Map(), swell: frame.swell || 1 };
    for (const name of ["id", "kind", "radius", "movable", "solid", "size", "geometry", "translucent"]) layout[name] = frame[name].slice();
    layout.sampled = frame.sampled ? frame.sampled.slice() : null;
    layout.drawn = layout.sampled ? layout.radius.map((r, row) => (layout.sampled[row] ? r * layout.swell : r)) : layout.radius;
    return layout;
  }

  colouring(frame, colour) {
    const made = this.kept.get(frame.number) || { values: new Map() };
    const values = STEADY.includes(colour) ? frame.bodies.values : made.values;
    if (!values.has(colour)) {
      const promise = askMessage(`values/${frame.number}/${colour}`);
      values.set(colour, promise);
      promise.then((found) => values === made.values && this.count(made, found.bytes)).catch(() => values.delete(colour));
    }
    return values.get(colour);
  }

  count(made, bytes) {
    made.bytes += bytes;
    this.bytes += bytes;
  }

  makeRoom() {
    for (const [number, made] of this.kept) {
      if (this.bytes < KEPT_BYTES || this.kept.size < 8) break;
      this.kept.delete(number);
      this.bytes -= made.bytes;
    }
    const named = new Set([...this.kept.values()].map((made) => made.layout).concat(this.lastLayout));
    for (const key of [...this.layouts.keys()]) if (!named.has(key)) this.layouts.delete(key);
  }

  forget() {
    this.kept.clear();
    this.bytes = 0;
  }
}
