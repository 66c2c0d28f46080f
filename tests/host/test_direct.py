"""The direct solver of joint rows against dense linear algebra: what one step does to mechanisms at rest.

The bodies get  v = argmin 1/2 (v - v_free)^T M (v - v_free)  such that  J v = -(position error) / h - curvature  (least squares where
rows are redundant). J is written down here from plain geometry, at the pose from which the step starts (``integrator="euler"``); the
curvature, from the errors at the poses to which the bodies come, so that these are zero.

The engine lets every row yield by a small share of its response: J v + c p = ..., c = softness (J M^-1 J^T), row by row. So each
mechanism is looked at twice: with next to no softness, against the rigid solution, and as it is, against the one that yields.
"""

from unittest import mock

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import gravel as gv
from gravel.host.joints import direct

H = 1e-3  # s
GRAVITY = np.array([0.3, -0.2, -9.81])  # m/s2


def matrix(q):
    w, x, y, z = q
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def cross(r):
    """The matrix of r x."""
    return np.array([[0, -r[2], r[1]], [r[2], 0, -r[0]], [-r[1], r[0], 0]])


class Mechanism:
    """Random boxes that touch nothing, joints between them, and the same in dense matrices."""

    def __init__(self, seed, masses=(0.5, 5.0), gravity=GRAVITY):
        self.rng = np.random.default_rng(seed)
        self.scene = gv.Scene(gravity=gravity)
        self.scene.ignore(0, 0)
        self.masses, self.mass, self.moments, self.driven = masses, [], [], {}
        self.joints = []  # bodies a and b; point in the frame of a, of b; joint's frame in that of a, of b; whether it is a hinge

    def body(self, **options):
        """A box at a random place; returns its id."""
        rng = self.rng
        mass = float(np.exp(rng.uniform(*np.log(self.masses))))
        moments = mass * rng.uniform(0.05, 0.09, 3)  # no moment above the sum of the others
        place = {"position": rng.normal(size=3), "quaternion": rng.normal(size=4), "mass": mass, "inertia": moments}
        b = self.scene.add_body(gv.Box((0.1, 0.2, 0.3)), **place, **options)
        still = bool(options)
        self.mass.append(np.inf if still else mass)
        self.moments.append(np.full(3, np.inf) if still else moments)
        if not still:
            self.scene.set_force(b, rng.normal(size=3), rng.normal(size=3))
        return b

    def carrier(self, velocity):
        """A body that moves along at a constant velocity, whatever hangs on it."""
        b = self.body(motion=gv.ConstantVelocity(velocity))
        self.driven[b] = np.array(velocity)
        return b

    def join(self, a, b, hinge, point=None, axis=None):
        """A hinge or a ball joint near the two bodies."""
        places = [self.frame(k)[0] for k in (a, b) if k is not None]
        point = np.mean(places, axis=0) + 0.3 * self.rng.normal(size=3) if point is None else np.array(point, float)
        axis = self.rng.normal(size=3) if axis is None else np.array(axis, float)
        kind = gv.Revolute if hinge else gv.Spherical
        self.scene.add_joint(kind(a, b, point=tuple(point), axis=tuple(axis)))
        axis = axis / np.linalg.norm(axis)
        swing = cross((-axis[1], axis[0], 0))
        frame = np.eye(3) + swing + swing @ swing / (1 + axis[2])  # the least turn that brings z to the axis
        (local_a, frame_a), (local_b, frame_b) = (self.local(body, point, frame) for body in (a, b))
        self.joints.append((a, b, local_a, local_b, frame_a, frame_b, hinge))

    def frame(self, body):
        if body is None:
            return np.zeros(3), np.eye(3)
        bodies = self.scene.bodies
        return bodies.position[body], matrix(bodies.quaternion[body])

    def local(self, body, point, frame):
        centre, turn = self.frame(body)
        return turn.T @ (point - centre), turn.T @ frame

    # --- the dense problem
    def solve(self, positions, quaternions, softness=0.0, redundant=False):
        """Velocities (n, 6) after the step from these poses, at rest before; and the forces and torques of the joints on body b."""
        n = len(self.mass)
        turns = [matrix(q) for q in quaternions]
        root, free = np.zeros((6 * n, 6 * n)), np.zeros(6 * n)  # root: M^-1/2
        for b in range(n):
            line, turn = slice(6 * b, 6 * b + 3), slice(6 * b + 3, 6 * b + 6)
            if b in self.driven:
                free[line] = self.driven[b]
            if np.isfinite(self.mass[b]):
                force, torque = self.scene.forces[b]
                root[line, line] = np.eye(3) / np.sqrt(self.mass[b])
                root[turn, turn] = turns[b] @ np.diag(1 / np.sqrt(self.moments[b])) @ turns[b].T
                free[line] = H * (self.scene.gravity + force / self.mass[b])
                free[turn] = H * root[turn, turn] @ root[turn, turn] @ torque
        J, error, owners = self.rows(positions, turns)
        # with y = M^1/2 (v - v_free) and A = J M^-1/2: y = A^T p, A y + c p = right
        A = J @ root
        compliance = softness * (A**2).sum(axis=1)
        system = np.block([[np.eye(6 * n), -A.T], [A, np.diag(compliance)]])
        least = redundant and softness == 0.0  # the least of the impulses that do it
        bias = error / H
        for _ in range(20):  # a third at the most of an error is left each time
            right = np.concatenate([np.zeros(6 * n), -(J @ free + bias)])
            impulse = (np.linalg.lstsq(system, right, rcond=1e-11)[0] if least else np.linalg.solve(system, right))[6 * n :]
            velocity = free + root @ A.T @ impulse
            assert np.abs(J @ velocity + compliance * impulse + bias).max() < 1e-10  # the rows can be kept
            bias = self.rows(*self.moved(positions, turns, velocity.reshape(n, 6)))[1] / H - J @ velocity
        forces, torques = np.zeros((len(self.joints), 3)), np.zeros((len(self.joints), 3))
        for k, (a, b, _, local_b, _, _, _) in enumerate(self.joints):
            point = local_b if b is None else positions[b] + turns[b] @ local_b
            body, sign = (a, -1.0) if b is None else (b, 1.0)  # the world gets the opposite of what body a gets
            on_b = sign * J[owners == k, 6 * body : 6 * body + 6].T @ impulse[owners == k] / H
            forces[k], torques[k] = on_b[:3], on_b[3:] - np.cross(point - positions[body], on_b[:3])
        return velocity.reshape(n, 6), forces, torques

    def moved(self, positions, turns, velocity):
        """Poses a step later: bodies turn as free tops, their momentum about one principal axis after the other."""
        after = []
        for b, (turn, w) in enumerate(zip(turns, velocity[:, 3:])):
            if np.isfinite(self.mass[b]):
                momentum = turn @ (self.moments[b] * (turn.T @ w))
                for axis, share in ((0, 0.5), (1, 0.5), (2, 1.0), (1, 0.5), (0, 0.5)):
                    rate = (turn.T @ momentum)[axis] / self.moments[b][axis]
                    turn = turn @ Rotation.from_rotvec(share * H * rate * np.eye(3)[axis]).as_matrix()
            after.append(turn)
        return positions + H * velocity[:, :3], after

    def rows(self, positions, turns):
        """Gradients and values of the constraints: d = (point of b) - (point of a) in the frame of a, and a1 . b3, a2 . b3."""
        n = len(positions)
        place = lambda b: (np.zeros(3), np.eye(3)) if b is None else (positions[b], turns[b])  # noqa: E731
        blocks, errors, owners = [], [], []
        for k, (a, b, local_a, local_b, frame_a, frame_b, hinge) in enumerate(self.joints):
            (x_a, R_a), (x_b, R_b) = place(a), place(b)
            arm_a, arm_b = R_a @ local_a, R_b @ local_b
            d, frame, (_, _, b3) = x_b + arm_b - x_a - arm_a, R_a @ frame_a, (R_b @ frame_b).T
            sides = {a: frame.T @ np.hstack([-np.eye(3), cross(arm_a + d)]), b: frame.T @ np.hstack([np.eye(3), -cross(arm_b)])}
            error = frame.T @ d
            if hinge:
                a1, a2, _ = frame.T
                swing = np.array([np.cross(b3, a1), np.cross(b3, a2)])
                sides[a] = np.vstack([sides[a], np.hstack([np.zeros((2, 3)), -swing])])
                sides[b] = np.vstack([sides[b], np.hstack([np.zeros((2, 3)), swing])])
                error = np.concatenate([error, [a1 @ b3, a2 @ b3]])
            block = np.zeros((len(error), 6 * n))
            for body, part in sides.items():
                if body is not None:
                    block[:, 6 * body : 6 * body + 6] = part
            blocks.append(block)
            errors.append(error)
            owners += [k] * len(error)
        return np.vstack(blocks), np.concatenate(errors), np.array(owners)

    def compare(self, move=0.0, redundant=False, tolerance=1e-9):
        """One step of the engine and the dense solution: the same momenta of all bodies, and the same reactions where they are unique.
        Returns the rigid simulation. Rounding errors in redundant rows are divided by the softness: there it must not be too small."""
        next_to_none, rigid_tolerance = (1e-10, 1e-5) if redundant else (1e-13, tolerance)
        with mock.patch.object(direct, "softness_of", lambda real: next_to_none):
            sim = self.compare_with(0.0, move, redundant, rigid_tolerance)
        with mock.patch.object(direct, "most_yield", lambda real: np.inf):
            self.compare_with(direct.softness_of(np.float64), move, redundant, tolerance)
        return sim

    def off_rigid(self, most_yield):
        """How far a step's velocities are from those of rigid joints, m/s."""
        with mock.patch.object(direct, "most_yield", lambda real: most_yield):
            sim = gv.Simulation(self.scene, H, precision="double", integrator="euler", recovery_speed=np.inf)
            rigid = self.solve(sim.positions, sim.quaternions)[0]
            sim.step()
        return np.abs(sim.velocities - rigid[:, :3])[np.isfinite(self.mass)].max()

    def compare_with(self, softness, move, redundant, tolerance):
        sim = gv.Simulation(self.scene, H, precision="double", integrator="euler", recovery_speed=np.inf)
        if move:
            free = sim.movable
            sim.positions[free] += move * self.rng.normal(size=(free.sum(), 3))
            sim.quaternions[free] += move * self.rng.normal(size=(free.sum(), 4))
            sim.quaternions[:] /= np.linalg.norm(sim.quaternions, axis=1, keepdims=True)
        positions, quaternions = sim.positions.copy(), sim.quaternions.copy()
        velocity, forces, torques = self.solve(positions, quaternions, softness, redundant)
        report = sim.step()
        assert report.contacts == 0 and report.residual < 1e-9 and report.converged
        scale = max(np.abs(velocity).max(), 1e-3)
        for b in range(len(self.mass)):
            if not np.isfinite(self.mass[b]):
                continue
            assert np.abs(sim.velocities[b] - velocity[b, :3]).max() < tolerance * scale
            assert np.abs(sim.positions[b] - positions[b] - H * velocity[b, :3]).max() < tolerance * scale * H
            # a body turns freely after the solve: its angular momentum stays
            before, after = matrix(quaternions[b]), matrix(sim.quaternions[b])
            want = before @ (self.moments[b] * (before.T @ velocity[b, 3:]))
            have = after @ (self.moments[b] * (after.T @ sim.angular_velocities[b]))
            assert np.abs(have - want).max() < tolerance * scale * self.moments[b].max()
        if softness or not redundant:
            size = max(np.abs(forces).max(), np.abs(torques).max())
            assert np.abs(sim.joints.force - forces).max() < 1e3 * tolerance * size
            assert np.abs(sim.joints.torque - torques).max() < 1e3 * tolerance * size
        return sim


def tree(seed, n=20, **options):
    """Every body hangs on one that came before, now and then on the world or on a fixed body."""
    made = Mechanism(seed, **options)
    rng = made.rng
    ends = [None, made.body(fixed=True)]
    for k in range(n):
        end = ends[rng.integers(len(ends))] if k else None
        b = made.body()
        made.join(*((end, b) if rng.random() < 0.5 else (b, end)), hinge=rng.random() < 0.5)
        ends.append(b)
    return made


@pytest.mark.parametrize("seed", range(4))
def test_trees(seed):
    tree(seed).compare()


def test_a_tree_that_hangs_on_nothing():
    """Momenta change by gravity and the given forces alone."""
    made = Mechanism(40)
    bodies = [made.body() for _ in range(12)]
    for k, b in enumerate(bodies[1:], 1):
        made.join(bodies[made.rng.integers(k)], b, hinge=bool(k % 2))
    sim = made.compare()
    mass = np.array(made.mass)
    gained = (mass[:, None] * sim.velocities).sum(axis=0)
    assert np.allclose(gained, H * (mass.sum() * GRAVITY + sum(force for force, _ in made.scene.forces.values())), rtol=1e-10)


@pytest.mark.parametrize("seed", range(4))
def test_trees_that_have_come_apart_close_in_one_step(seed):
    """Points do not meet and axes are not parallel when the step starts."""
    made = tree(100 + seed)
    made.compare(move=1e-4)


@pytest.mark.parametrize("seed", range(4))
def test_loops(seed):
    """A chain with eight ball joints more, each closing a loop of its own: no row is redundant."""
    made = Mechanism(200 + seed)
    bodies = [made.body() for _ in range(20)]
    for k in range(20):
        made.join(bodies[k - 1] if k else None, bodies[k], hinge=k % 4 == 0)
    pairs = [(a, b) for a in range(20) for b in range(a - 1)]
    for k in made.rng.choice(len(pairs), 8, replace=False):
        made.join(*(bodies[b] for b in pairs[k]), hinge=False)
    made.compare(tolerance=1e-8)


@pytest.mark.parametrize("seed", range(2))
def test_loops_that_have_come_apart(seed):
    made = Mechanism(300 + seed)
    bodies = [made.body() for _ in range(8)]
    for k in range(8):
        made.join(bodies[k - 1], bodies[k], hinge=k % 3 == 0)
    made.join(None, bodies[0], hinge=False)
    made.compare(move=1e-4, tolerance=1e-8)


@pytest.mark.parametrize("spokes", [3, 25])
def test_hubs(spokes):
    """Many bodies on one, every third of them joined to its neighbour as well."""
    made = Mechanism(400 + spokes)
    hub = made.body()
    made.join(hub, None, hinge=True)
    rim = [made.body() for _ in range(spokes)]
    for b in rim:
        made.join(hub, b, hinge=False)
    for a, b in list(zip(rim, rim[1:]))[::3]:
        made.join(a, b, hinge=False)
    made.compare(tolerance=1e-8)


def test_hub_without_a_world():
    """A star that falls: each arm has a ball joint on one free hub."""
    made = Mechanism(450)
    hub = made.body()
    for k in range(30):
        made.join(made.body(), hub, hinge=bool(k % 2))
    made.compare()


@pytest.mark.parametrize("seed", range(3))
def test_redundant_rows_of_one_door(seed):
    """Two and three hinges about one axis, as a door has them: five rows are enough for ten or fifteen."""
    made = Mechanism(500 + seed)
    axis, point = made.rng.normal(size=3), made.rng.normal(size=3)
    door, leaf = made.body(), made.body()
    for height in (0.0, 0.7, -0.4)[: 2 + seed % 2]:
        made.join(None, door, hinge=True, point=point + height * axis, axis=axis)
    made.join(door, leaf, hinge=True)
    made.compare(redundant=True, tolerance=1e-8)


@pytest.mark.parametrize("bars", [4, 6])
def test_redundant_rows_of_a_plane_linkage(bars):
    """A closed chain of hinges with parallel axes: three rows are redundant, whatever the number of bars above three."""
    made = Mechanism(550 + bars)
    links = [made.body() for _ in range(bars - 1)]
    ends = [None, *links, None]
    angles = np.sort(made.rng.uniform(0, 2 * np.pi, bars))
    for k in range(bars):
        made.join(ends[k], ends[k + 1], hinge=True, point=(np.cos(angles[k]), np.sin(angles[k]), 0.3 * k), axis=(0, 0, 1))
    velocity, _, _ = made.solve(made.scene.bodies.position, made.scene.bodies.quaternion, redundant=True)
    assert np.abs(velocity).max() > 1e-4  # it is a mechanism, not a frame
    made.compare(redundant=True, tolerance=1e-8)


def test_more_rows_than_freedoms():
    """Three bodies welded to each other and to the world by ball joints all over: nothing moves."""
    made = Mechanism(600)
    bodies = [None, *(made.body() for _ in range(3))]
    for a in range(4):
        for b in range(a):
            for _ in range(3):
                made.join(bodies[a], bodies[b], hinge=False)
    sim = made.compare(redundant=True, tolerance=1e-8)
    assert np.abs(sim.velocities).max() < 1e-9


def test_the_same_joint_twice():
    made = Mechanism(650)
    a, b, c = (made.body() for _ in range(3))
    for _ in range(2):
        made.join(None, a, hinge=False, point=(0.1, 0.2, 0.3))
        made.join(b, a, hinge=True, point=(0.5, 0, 0), axis=(1, 2, 3))
    made.join(c, b, hinge=False)
    made.compare(redundant=True, tolerance=1e-8)


def test_mass_ratio_of_a_million():
    """Links of grams between bodies of tonnes."""
    made = tree(700, n=20, masses=(1e-3, 1e3))
    made.compare(tolerance=1e-7)


def test_light_links_yield_less_under_a_load():
    """Plain softness lets go of them; what is left for heavy loads does not."""
    made = tree(700, n=20, masses=(1e-5, 1e3))
    assert made.off_rigid(np.inf) > 5e-3
    assert made.off_rigid(direct.most_yield(np.float64)) < 5e-4


def test_bodies_that_follow_a_motion():
    """What hangs on a carrier gets its speed in the first step."""
    made = Mechanism(750)
    carrier = made.carrier((0.5, -0.2, 0.1))
    links = [made.body() for _ in range(6)]
    for k in range(6):
        made.join(links[k - 1] if k else carrier, links[k], hinge=bool(k % 2))
    made.compare()


def test_islands_do_not_touch_each_other():
    """Several mechanisms in one scene get, each, what they get alone; a body without joints falls."""
    made = Mechanism(800)
    for n in (1, 3, 7):
        bodies = [made.body() for _ in range(n)]
        for k in range(n):
            made.join(bodies[k - 1] if k else None, bodies[k], hinge=bool(k % 2))
    made.body()
    made.compare()


def test_a_long_chain():
    """60 links, ball joints and hinges, from the world."""
    made = Mechanism(850)
    last = None
    for k in range(60):
        b = made.body()
        made.join(last, b, hinge=k % 3 == 0)
        last = b
    made.compare(tolerance=1e-8)


def test_the_dense_solution_itself():
    """A hinged rod that starts from level: alpha = m g l / I about the hinge; the hinge carries the rest."""
    made = Mechanism(0, gravity=(0, 0, -9.81))
    rod = made.scene.add_body(gv.Box((0.5, 0.05, 0.05)), position=(0.5, 0, 0), mass=2.0, inertia=(0.01, 0.2, 0.2))
    made.mass, made.moments = [2.0], [np.array([0.01, 0.2, 0.2])]
    made.scene.set_force(rod)
    made.join(None, rod, hinge=True, point=(0, 0, 0), axis=(0, 1, 0))
    velocity, forces, _ = made.solve(made.scene.bodies.position, made.scene.bodies.quaternion)
    alpha = 2.0 * 9.81 * 0.5 / (0.2 + 2.0 * 0.25)
    turn = alpha * H**2  # in the step, along a circle
    assert np.allclose(velocity, [[0.5 * (np.cos(turn) - 1) / H, 0, -0.5 * np.sin(turn) / H, 0, alpha * H, 0]], atol=1e-11)
    assert np.allclose(forces, [[2.0 * velocity[0, 0] / H, 0, 2.0 * (9.81 - 0.5 * alpha)]])
    made.compare()
