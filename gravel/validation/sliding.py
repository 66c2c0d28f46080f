"""Blocks set sliding: they stay on the floor, stay upright, and stop where Coulomb's law predicts."""

import numpy as np

from gravel.model.materials import Material
from gravel.rotations import rotate
from gravel.shapes import Box
from gravel.validation.case import Curve, Outcome, case, largest
from gravel.validation.running import G, on_floor, record, rounding, simulate

STEP = 1 / 500  # s


def set_sliding(half, mu, speed, seconds):
    """Times, and way, height over the floor and tilt of a block that starts at a speed, lying on the floor."""
    stone, up = Material(friction=mu), np.array([0.0, 0.0, 1.0])
    scene = on_floor(stone)
    scene.add_body(Box(half), (0, 0, half[2]), stone, velocity=(speed, 0, 0))

    def note(sim):
        x, _, z = sim.positions[1]
        lean = rotate(sim.quaternions[1], up)
        return x, z - half[2], np.hypot(lean[0], lean[1])

    return record(simulate(scene, STEP), seconds, note, every=10)


def way_of(times, speed, mu):
    """Of what friction slows down, until it rests."""
    moving = np.minimum(times, speed / (mu * G))
    return speed * moving - 0.5 * mu * G * moving**2


@case("Block set sliding")
def block_set_sliding() -> Outcome:
    r"""A flat block on a floor is given 5 m/s. With $\mu = 0.5$ it stays on the floor, $z = 0$, and stops after $v^2 / (2 \mu g)$ =
    2.55 m (Coulomb's law). The convex relaxation throws it up at $v_z = \mu v / (1 + \mu^2)$, 205 mm high, at any step size. Steps of
    1/500 s; in the step in which the block stops, the distance is off by up to $\tfrac{1}{8} \mu g h^2$. At defaults, rounding in
    single precision adds to that."""
    mu, speed = 0.5, 5.0
    times, found = set_sliding((0.2, 0.2, 0.05), mu, speed, 1.2)
    curves = [Curve("way", times, way_of(times, speed, mu), found[:, 0]), Curve("height", times, np.zeros(len(times)), found[:, 1])]
    return largest("time, s", "way and height, m", curves, 1.0, "m", mu * G * STEP**2, mu * G * STEP**2 + rounding(510, speed))


@case("Tall block that just does not tip")
def tall_block() -> Outcome:
    r"""Friction at the foot of a sliding block, $2 b$ wide and $2 c$ high, tips it with the moment $\mu m g c$, and its weight holds it
    with $m g b$: it slides upright if $b / c > \mu$. Here $\mu = 0.45$, $b / c = 0.46$, and 3 m/s, steps of 1/500 s:
    $x = v t - \tfrac{1}{2} \mu g t^2$ until it rests, and no tilt. The bound is a tenth of a millimetre and of a milliradian."""
    mu, speed = 0.45, 3.0
    times, found = set_sliding((0.046, 0.05, 0.1), mu, speed, 0.8)
    nothing = np.zeros(len(times))
    curves = [
        Curve("way, m", times, way_of(times, speed, mu), found[:, 0]),
        Curve("height, m", times, nothing, found[:, 1]),
        Curve("tilt, rad", times, nothing, found[:, 2]),
    ]
    return largest("time, s", "way and height, m; tilt, rad", curves, 1.0, "m or rad", 1e-4)
