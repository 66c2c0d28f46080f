"""Which members count as stiff, and what they get: against the frequencies of the whole machine by dense linear algebra.

Forces f of the joints at arms r resist turns of their bodies with K = (r . f) 1 - (r f^T + f r^T) / 2. A step h is stable where the
largest eigenvalue (w h)^2 of h^2 K against M, for motions that the joints allow, is below 4; the engine adds to M where it may exceed 1,
and its bound may be too large by the lent part of the inertia, 5 %, at most.
"""

import numpy as np
import pytest
from scipy.linalg import block_diag, eigh, null_space

import gravel as gv
from gravel.host.joints import laws
from gravel.host.joints.stage import fields_of
from gravel.rotations import to_matrix

H = 1e-3  # s


class Machine:
    """What the engine makes of a scene whose joints bear the given forces (on body b), and the same in dense matrices."""

    def __init__(self, scene, force):
        sim = gv.Simulation(scene, dt=H, precision="double")
        bodies, self.stage = sim.engine.rows, sim.engine.joints
        members, self.force, n = self.stage.members, force, len(self.stage.members.id)
        self.stage.gather(bodies, 0.0)
        self.own = [tensor(t) for t in members.inertia]
        numbers, stage = (np.arange(n), np.zeros(n, np.int64), H), self.stage
        rest = members, stage.laws, stage.rows, stage.measured, np.zeros(8 * (n + 1))
        self.stiff, _ = laws.measure(fields_of(bodies), *numbers, stage.anchors, force, *rest, False)
        self.added = [tensor(t) - own for t, own in zip(members.inertia, self.own)]
        self.mass = members.mass.copy()

    def gradients(self):
        """Rows as wide as all velocities are many, scaled to 1."""
        rows, dense = self.stage.rows, np.zeros((len(self.stage.rows.eta), 6 * len(self.mass)))
        for k in range(len(dense)):
            for e in range(rows.start[k], rows.start[k + 1]):
                dense[k, 6 * rows.member[e] :][:6] += rows.jacobian[e]
        return dense / np.linalg.norm(dense, axis=1, keepdims=True)

    def stiffness(self):
        """(k, 3, 3)"""
        anchors, found = self.stage.anchors, np.zeros((len(self.mass), 3, 3))
        for members, points, sign in ((anchors.member_a, anchors.point_a, -1), (anchors.member_b, anchors.point_b, 1)):
            for k, point, f in zip(members, points, sign * self.force):
                if k >= 0:
                    r = to_matrix(self.stage.members.quaternion[k]) @ point
                    found[k] += (r @ f) * np.eye(3) - (np.outer(r, f) + np.outer(f, r)) / 2
        return found

    def fastest(self, added):
        """The largest (w h)^2 of what the joints allow, with so much added to the inertia."""
        free = null_space(self.gradients())
        stiffness = block_diag(*(part for k in self.stiffness() for part in (np.zeros((3, 3)), k)))
        mass = block_diag(*(part for m, own, more in zip(self.mass, self.own, added) for part in (m * np.eye(3), own + more)))
        return eigh(H * H * free.T @ stiffness @ free, free.T @ mass @ free, eigvals_only=True)[-1]

    def fastest_alone(self):
        """The same for each body as if it could turn about its centre freely; the largest."""
        return max(eigh(H * H * k, own, eigvals_only=True)[-1] for k, own in zip(self.stiffness(), self.own))


def tensor(t):
    return np.array([[t[0], t[1], t[2]], [t[1], t[3], t[4]], [t[2], t[4], t[5]]])


def random_chain(seed):
    """Six bodies, of grams and of kilograms, some nearly points, some with a joint at their centre, and forces of any size."""
    rng = np.random.default_rng(seed)
    scene, before, point, joints = gv.Scene(gravity=(0, 0, 0)), None, np.zeros(3), 0
    scene.ignore(0, 0)
    for _ in range(6):
        mass, radius, arm = 10.0 ** rng.uniform(-3, 1), 0.1 * 10.0 ** rng.uniform(-3, 0.3), 0.1 * rng.normal(size=3)
        centre = point + arm * (rng.random() < 0.8)
        moments = mass * radius**2 * rng.uniform(1, 1.9, 3)
        body = scene.add_body(gv.Sphere(0.01), centre, mass=mass, inertia=moments, quaternion=rng.normal(size=4))
        if before is not None or rng.random() < 0.6:
            kind, axis = rng.integers(4), rng.normal(size=3)
            options = {} if kind == 0 else {"axis": axis}
            options |= {"axis_b": np.cross(axis, (0, 0, 1))} if kind == 2 else {}
            scene.add_joint((gv.Spherical, gv.Revolute, gv.Universal, gv.Prismatic)[kind](before, body, point=point, **options))
            joints += 1
        before, point = body, centre + arm * (rng.random() < 0.7)
    force = rng.normal(size=(joints, 3)) * 10.0 ** rng.uniform(0, 5)
    return Machine(scene, force)


def test_machines_are_stable_with_what_is_added():
    """And where nothing is added; nothing is added to most of those that are far from stiff, however light their bodies' own inertia."""
    known, needed = 0, 0
    for seed in range(60):
        made = random_chain(seed)
        plain = made.fastest(np.zeros_like(made.added))
        assert made.fastest(made.added) <= 1.06
        assert made.stiff or plain <= 1.06
        known += made.fastest_alone() > 1.0 and not made.stiff
        needed += plain > 4.0
    assert known >= 8 and needed >= 15


@pytest.mark.parametrize("share, stiff", [(0.99, 0), (1.01, 1)])
@pytest.mark.parametrize("radius", [1e-4, 1e-2, 1.0])
def test_a_body_on_a_hinge_turns_with_its_mass(radius, share, stiff):
    """Held at an arm r, it turns with I + m r^2; a pull f along the arm resists with f r."""
    mass, arm = 2.0, 0.5
    inertia = mass * radius**2
    scene = gv.Scene()
    body = scene.add_body(gv.Sphere(0.01), (arm, 0, 0), mass=mass, inertia=(inertia,) * 3)
    scene.add_joint(gv.Revolute(None, body, point=(0, 0, 0), axis=(0, 1, 0)))
    pull = share * (inertia + mass * arm**2) / (H * H * arm)
    assert Machine(scene, np.array([[-pull, 0.0, 0.0]])).stiff == stiff


def test_heavy_bodies_do_not_make_a_light_link_safe():
    """At the end of a body of a million times its mass it turns with its own m l^2 / 3, no more."""
    scene = gv.Scene(gravity=(0, 0, 0))
    scene.ignore(0, 0)
    heavy = scene.add_body(gv.Sphere(0.02), (-0.05, 0, 0), mass=1e3)
    link = scene.add_body(gv.Box((0.05, 0.005, 0.005)), (0, 0, 0), mass=1e-3)
    scene.add_joint(gv.Spherical(heavy, link, point=(-0.05, 0, 0)))
    made = Machine(scene, np.array([[-2 * (1e-3 * 0.1**2 / 3) / (H * H * 0.05), 0.0, 0.0]]))
    assert made.fastest(np.zeros_like(made.added)) == pytest.approx(2.0, rel=0.02)
    assert made.stiff == 1 and made.fastest(made.added) <= 1.06
