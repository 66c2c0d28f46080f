// Shaders of bodies, lines and planes (GLSL 3). Poses are applied here: the arrays of a frame go to the card as they came.

const COLOUR = `
uniform sampler2D scale; uniform vec2 limits; uniform bool numbered; uniform float selected; uniform bool picking;
vec3 colourOf(float value) {
  float s = numbered ? (mod(value, 7.0) + 0.5) / 7.0 : clamp((value - limits.x) / max(limits.y - limits.x, 1e-30), 0.002, 0.998);
  return texture(scale, vec2(s, 0.5)).rgb;
}
vec4 numberColour(float number) {
  float n = number + 1.0;
  return vec4(mod(n, 256.0), mod(floor(n / 256.0), 256.0), floor(n / 65536.0), 255.0) / 255.0;
}
vec3 lit(vec3 base, vec3 normal) {
  float key = max(dot(normal, vec3(0.36, 0.48, 0.80)), 0.0), fill = max(dot(normal, vec3(-0.6, 0.2, 0.4)), 0.0);
  float edge = 0.72 + 0.28 * smoothstep(0.0, 0.5, normal.z);
  return base * (0.48 + 0.58 * key + 0.14 * fill) * edge;
}
vec3 shown(float value, float number, vec3 normal) {
  vec3 base = colourOf(value);
  if (abs(number - selected) < 0.5) base = vec3(1.0, 0.15, 0.1);
  return lit(base, normal);
}`;

const BALL = `
in float radius; in float value;
flat out float vValue; flat out float vNumber; flat out vec4 vBall;`;

// a ball as one point: the quickest by far where it is small
export const pointVertex = `${BALL}
uniform float pixels; uniform float largest; uniform float swell;
void main() {
  vec4 centre = modelViewMatrix * vec4(position, 1.0);
  float size = 2.0 * pixels * radius * swell / -centre.z;
  vBall = vec4(centre.xyz, radius * swell); vValue = value; vNumber = float(gl_VertexID);
  gl_Position = projectionMatrix * centre;
  gl_PointSize = max(size, 1.0);
  if (size > largest || centre.z > 0.0) gl_Position = vec4(2.0, 2.0, 2.0, 1.0); // drawn as a square
}`;

// a ball as a square that faces the camera: for those that are near
export const squareVertex = `
in vec3 place; in float number; ${BALL}
void main() {
  vec4 centre = modelViewMatrix * vec4(place, 1.0);
  vBall = vec4(centre.xyz, radius); vValue = value; vNumber = number;
  float away = length(centre.xyz), reach = radius * away / sqrt(max(away * away - radius * radius, 1e-12)); // of the cone that touches it
  vec3 toward = -centre.xyz / away, side = normalize(cross(vec3(0, 1, 0), toward)), up = cross(toward, side);
  gl_Position = projectionMatrix * vec4(centre.xyz + reach * (position.x * side + position.y * up), 1.0);
}`;

export const pointFragment = (exact) => `
flat in float vValue; flat in float vNumber; flat in vec4 vBall; out vec4 colour;
uniform mat4 projection; ${COLOUR}
void main() {
  vec2 p = vec2(2.0 * gl_PointCoord.x - 1.0, 1.0 - 2.0 * gl_PointCoord.y);
  float r2 = dot(p, p);
  if (r2 > 1.0) discard;
  vec3 normal = vec3(p, sqrt(1.0 - r2));
  ${exact ? "vec4 clip = projection * vec4(vBall.xyz + vBall.w * normal, 1.0); gl_FragDepth = 0.5 * clip.z / clip.w + 0.5;" : ""}
  colour = picking ? numberColour(vNumber) : vec4(shown(vValue, vNumber, normal), 1.0);
}`;

// near balls are met by the true ray
export const squareFragment = `
flat in float vValue; flat in float vNumber; flat in vec4 vBall; out vec4 colour;
uniform mat4 projection; uniform mat4 back; uniform vec2 window; ${COLOUR}
void main() {
  vec4 far = back * vec4(2.0 * gl_FragCoord.xy / window - 1.0, 1.0, 1.0);
  vec3 ray = normalize(far.xyz / far.w);
  float along = dot(ray, vBall.xyz), inside = along * along - dot(vBall.xyz, vBall.xyz) + vBall.w * vBall.w;
  if (inside < 0.0) discard;
  vec3 hit = (along - sqrt(inside)) * ray;
  if (hit.z > 0.0) discard;
  vec4 clip = projection * vec4(hit, 1.0);
  gl_FragDepth = 0.5 * clip.z / clip.w + 0.5;
  colour = picking ? numberColour(vNumber) : vec4(shown(vValue, vNumber, (hit - vBall.xyz) / vBall.w), 1.0);
}`;

const TURNED = `
in vec3 place; in vec4 turn; in vec4 size; in float value; in float number;
flat out float vValue; flat out float vNumber; flat out vec3 vSize; out vec3 vLocal; out vec3 vView; out vec3 vWorld; flat out vec4 vTurn;
vec3 turned(vec4 q, vec3 v) { vec3 t = 2.0 * cross(q.yzw, v); return v + q.x * t + cross(q.yzw, t); }
void put(vec3 local) {
  vWorld = place + turned(turn, local);
  vec4 view = viewMatrix * vec4(vWorld, 1.0);
  vLocal = local; vSize = size.xyz; vValue = value; vNumber = number; vView = view.xyz; vTurn = turn;
  gl_Position = projectionMatrix * view;
}`;

// simple shapes: a corner is linear in the three sizes and the rounding radius; sloped: its normal is the same for all sizes
export const templateVertex = (sloped) => `
in vec4 weightX; in vec4 weightY; in vec4 weightZ; ${sloped ? "in vec3 slope; out vec3 vSlope;" : ""} ${TURNED}
void main() { ${sloped ? "vSlope = slope;" : ""} put(vec3(dot(weightX, size), dot(weightY, size), dot(weightZ, size))); }`;

// hulls, meshes, compounds
export const surfaceVertex = `
in vec3 corner; in vec3 slope; out vec3 vSlope; ${TURNED}
void main() { vSlope = slope; put(corner * size.x); }`;

// the normal of a simple shape at a place of its surface, by formula: 1 ellipsoid, 2 capsule, 3 cylinder, 4 cone, 0 flat faces
const NORMALS = `
uniform int rounding;
vec3 normalAt(vec3 p, vec3 e) {
  if (rounding == 1) return p / (e * e);
  if (rounding == 2) return p - vec3(0.0, 0.0, clamp(p.z, -e.y, e.y));
  if (rounding == 3) return abs(p.z) > 0.9999 * e.y ? vec3(0.0, 0.0, p.z) : vec3(p.xy, 0.0);
  return p.z < -0.2499 * e.y ? vec3(0.0, 0.0, -1.0) : vec3(normalize(p.xy + 1e-12) * e.y, e.x);
}`;

export const solidFragment = (sloped) => `
flat in float vValue; flat in float vNumber; flat in vec3 vSize; in vec3 vLocal; in vec3 vView; in vec3 vWorld; flat in vec4 vTurn;
${sloped ? "in vec3 vSlope;" : NORMALS}
out vec4 colour; uniform vec4 cut; uniform float opacity; uniform bool wall; uniform vec3 quiet; ${COLOUR}
vec3 turned(vec4 q, vec3 v) { vec3 t = 2.0 * cross(q.yzw, v); return v + q.x * t + cross(q.yzw, t); }
void main() {
  if (wall && dot(cut.xyz, vWorld) < cut.w) discard;
  vec3 flatNormal = normalize(cross(dFdx(vView), dFdy(vView)));
  ${sloped ? "vec3 own = vSlope; bool flat_ = false;" : "bool flat_ = rounding == 0; vec3 own = flat_ ? vec3(0.0) : normalAt(vLocal, vSize);"}
  vec3 normal = flat_ ? flatNormal : normalize(mat3(viewMatrix) * turned(vTurn, own));
  if (dot(normal, vView) > 0.0) normal = -normal;
  if (picking) { colour = numberColour(vNumber); return; }
  vec3 base = wall ? quiet : colourOf(vValue);
  if (abs(vNumber - selected) < 0.5) base = vec3(1.0, 0.15, 0.1);
  colour = vec4(lit(base, normal), opacity);
}`;

// a contact or a spring: a ribbon that faces the camera
export const lineVertex = `
in vec3 start; in vec3 end; in float width; in vec3 tint; out vec3 vTint;
uniform float pixels; uniform float thickness;
void main() {
  vec3 a = (viewMatrix * vec4(start, 1.0)).xyz, b = (viewMatrix * vec4(end, 1.0)).xyz;
  vec3 here = mix(a, b, position.x), side = normalize(cross(b - a, here) + vec3(1e-20));
  float half_ = max(0.5 * thickness * width, -0.5 * here.z / pixels);
  vTint = tint;
  gl_Position = projectionMatrix * vec4(here + position.y * half_ * side, 1.0);
}`;
export const lineFragment = `in vec3 vTint; out vec4 colour; void main() { colour = vec4(vTint, 1.0); }`;

// a plane: a disc and a grid on it that fade into the background towards their rim; from below it is not there
export const planeVertex = `in float strength; out float vStrength; void main() { vStrength = strength; gl_Position = projectionMatrix * modelViewMatrix * vec4(position, 1.0); }`;
export const planeFragment = `in float vStrength; out vec4 colour; uniform vec3 quiet; void main() { colour = vec4(mix(vec3(1.0), quiet, vStrength), 1.0); }`;
