// Which balls are likely to be seen at all. In a dense bed most are hidden by others from every side, and need not be drawn while the picture
// moves; the picture at rest has all of them, since between large grains one may see far inside.
//
// Space is cut into voxels of a little more than a diameter. Those that are filled to more than OPAQUE let no light through. Light comes in
// from the border of the grid and spreads through voxels that are not opaque; a ball is seen if its voxel or a neighbour of it is lit.
// Balls much larger than most are always drawn and hide nobody.

const FEW = 15000; // of so many balls all are drawn
const OPAQUE = 0.2; // share of a voxel's volume
const WIDTH = 2.5; // of a voxel, in median radii
const MOST_VOXELS = 4e6;

export function seen(rows, position, radius) {
  if (rows.length <= FEW) return rows;
  const grid = gridOf(rows, position, radius);
  if (!grid) return rows;
  const { count, voxelOf, voxels } = grid;
  const filled = new Float32Array(voxels);
  const volume = grid.width ** 3;
  for (let k = 0; k < count; k++) {
    const r = radius[rows[k]];
    if (r < grid.width) filled[voxelOf[k]] += (4.19 * r * r * r) / volume;
  }
  const near = spread(filled, grid);
  const result = new Uint32Array(count);
  let n = 0;
  for (let k = 0; k < count; k++) if (near[voxelOf[k]] || radius[rows[k]] >= grid.width) result[n++] = rows[k];
  return result.subarray(0, n);
}

function gridOf(rows, position, radius) {
  const count = rows.length;
  const sample = Float32Array.from({ length: 1001 }, (_, k) => radius[rows[Math.floor((k * (count - 1)) / 1000)]]).sort();
  const width = WIDTH * sample[500];
  const low = [Infinity, Infinity, Infinity], high = [-Infinity, -Infinity, -Infinity];
  for (let k = 0; k < count; k++)
    for (let a = 0; a < 3; a++) {
      const x = position[3 * rows[k] + a];
      if (x < low[a]) low[a] = x;
      if (x > high[a]) high[a] = x;
    }
  const size = low.map((x, a) => Math.floor((high[a] - x) / width) + 3); // a border of empty voxels all around
  const voxels = size[0] * size[1] * size[2];
  if (!(voxels < MOST_VOXELS)) return null; // spread over far too much space to be dense
  const strideY = size[0], strideZ = size[0] * size[1], voxelOf = new Uint32Array(count), one = 1 / width;
  for (let k = 0; k < count; k++) {
    const r = 3 * rows[k];
    voxelOf[k] =
      1 + Math.floor((position[r] - low[0]) * one) +
      strideY * (1 + Math.floor((position[r + 1] - low[1]) * one)) +
      strideZ * (1 + Math.floor((position[r + 2] - low[2]) * one));
  }
  return { count, width, size, voxels, strideY, strideZ, voxelOf };
}

// 1 for voxels that are lit, or touch one that is.
function spread(filled, { size, voxels, strideY, strideZ }) {
  const lit = new Uint8Array(voxels), stack = new Uint32Array(voxels);
  const steps = [1, -1, strideY, -strideY, strideZ, -strideZ];
  let top = 0;
  lit[0] = 1;
  stack[top++] = 0;
  while (top) {
    const here = stack[--top];
    const x = here % strideY, y = Math.floor((here % strideZ) / strideY), z = Math.floor(here / strideZ);
    const open = [x < size[0] - 1, x > 0, y < size[1] - 1, y > 0, z < size[2] - 1, z > 0];
    for (let s = 0; s < 6; s++) {
      const there = here + steps[s];
      if (open[s] && !lit[there] && filled[there] < OPAQUE) {
        lit[there] = 1;
        stack[top++] = there;
      }
    }
  }
  const near = lit.slice();
  for (let v = 0; v < voxels; v++)
    if (!lit[v])
      for (const step of steps)
        if (lit[v + step]) {
          near[v] = 1;
          break;
        }
  return near;
}
