"""Motion without contact: flight and free rotation."""

import numpy as np
from scipy.special import ellipj, ellipk

from gravel.rotations import conjugate, rotate
from gravel.scene import Scene
from gravel.shapes import Box
from gravel.validation.case import Curve, Outcome, case, largest
from gravel.validation.running import G, record, rounding, simulate

HALF, MASS = (0.3, 0.2, 0.1), 6.0  # of the box that turns


def moments(half, mass):
    """Principal moments of inertia of a box, kg m2."""
    a, b, c = half
    return mass / 3 * np.array([b * b + c * c, a * a + c * c, a * a + b * b])


def spinning_box(half, spin, **options):
    """A box alone, without gravity, that turns."""
    scene = Scene(gravity=(0, 0, 0))
    scene.add_body(Box(half), mass=MASS, angular_velocity=spin)
    return simulate(scene, **options)


def own_rates(sim):
    """Angular velocity in the frame of the body, rad/s."""
    return rotate(conjugate(sim.quaternions[0]), sim.angular_velocities[0])


@case("Free flight")
def free_flight() -> Outcome:
    r"""A box is thrown up: $x(t) = x_0 + v_0 t + \tfrac{1}{2} g t^2$. The midpoint rule is exact for parabolas, so only rounding
    remains; at defaults 1 000 roundings in single precision."""
    start, velocity, gravity = np.array([0.0, 0.0, 1.0]), np.array([2.0, 0.0, 4.0]), np.array([0.0, 0.0, -G])
    scene = Scene(gravity=gravity)
    scene.add_body(Box((0.1, 0.2, 0.3)), start, velocity=velocity)
    times, places = record(simulate(scene), 1.0, lambda sim: sim.positions[0], every=20)
    wanted = start + np.outer(times, velocity) + 0.5 * np.outer(times**2, gravity)
    curves = [Curve(name, times, wanted[:, k], places[:, k]) for name, k in (("x", 0), ("z", 2))]
    return largest("time, s", "place, m", curves, 1.0, "m", 1e-12, rounding(1000, 6.0) * 0.5)


@case("Spin about the intermediate axis")
def intermediate_axis() -> Outcome:
    r"""A box spun about its intermediate axis flips over periodically (Dzhanibekov's effect). With $I_1 < I_2 < I_3$ and
    $L^2 > 2 E I_2$ the rates in the body frame are Jacobi's elliptic functions, $\omega_1 = a_1 \mathrm{cn}\,\tau$,
    $\omega_2 = a_2 \mathrm{sn}\,\tau$, $\omega_3 = a_3 \mathrm{dn}\,\tau$ with
    $\tau = t \sqrt{(I_3 - I_2)(L^2 - 2 E I_1) / (I_1 I_2 I_3)} + \tau_0$ (Landau and Lifshitz, *Mechanics*, section 37). The deviation
    from the axis grows by a factor of e every 0.21 s, and so does the rounding error of single precision; so at defaults the bound is
    one hundredth of the spin."""
    spin = np.array([0.0, 10.0, 0.1])
    i1, i2, i3 = inertia = moments(HALF, MASS)
    square, twice = np.sum((inertia * spin) ** 2), inertia @ spin**2  # L2 and 2 E
    pace = np.sqrt((i3 - i2) * (square - twice * i1) / (i1 * i2 * i3))
    m = (i2 - i1) * (twice * i3 - square) / ((i3 - i2) * (square - twice * i1))
    high, low = twice * i3 - square, square - twice * i1
    sizes = np.sqrt([high / (i1 * (i3 - i1)), high / (i2 * (i3 - i2)), low / (i3 * (i3 - i1))])
    sim = spinning_box(HALF, spin)
    times, rates = record(sim, 4.0, own_rates, every=10)
    sn, cn, dn, _ = ellipj(pace * times + ellipk(m), m)
    wanted = sizes * np.column_stack([cn, sn, dn])
    curves = [Curve(f"$\\omega_{k + 1}$", times, wanted[:, k], rates[:, k]) for k in range(3)]
    return largest("time, s", "rate in the body's frame, rad/s", curves, 10.0, "of the spin", 4e-5, 0.01)


@case("Free symmetric top")
def symmetric_top() -> Outcome:
    r"""The axis of a free top with moments $(I_t, I_t, I_3)$ rotates about its angular momentum at $|L| / I_t$: by Rodrigues' formula,
    about $L / |L|$ by the angle $|L| t / I_t$."""
    half, spin, up = (0.2, 0.2, 0.05), np.array([3.0, 0.0, 9.0]), np.array([0.0, 0.0, 1.0])
    inertia = moments(half, MASS)
    momentum = inertia * spin
    length = np.linalg.norm(momentum)
    along = momentum / length
    times, axes = record(spinning_box(half, spin), 2.0, lambda sim: rotate(sim.quaternions[0], up), every=10)
    angle = (length / inertia[0] * times)[:, None]
    wanted = up * np.cos(angle) + np.cross(along, up) * np.sin(angle) + along * (along @ up) * (1 - np.cos(angle))
    curves = [Curve(name, times, wanted[:, k], axes[:, k]) for k, name in enumerate("xyz")]
    return largest("time, s", "direction of the axis", curves, 1.0, "(absolute)", 2e-4)
