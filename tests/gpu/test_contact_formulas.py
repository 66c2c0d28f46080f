"""Contact formulas as the device compiles them, against the plain functions in double precision."""

import numpy as np
import warp as wp

from gravel.formulas import cones, contact_laws, responses
from gravel.formulas.vectors import tangents
from gravel.gpu.formulas import FORMS, vec6

DEVICE, N = "cpu", 300
_cones, _laws, _responses = FORMS.of(cones), FORMS.of(contact_laws), FORMS.of(responses)
best_impulse, best_torque, turned_into_cone, project = _cones.best_impulse, _cones.best_torque, _cones.turned_into_cone, _cones.project
bias_of, cohesive_impulse, contact_responses = _laws.bias_of, _laws.cohesive_impulse, _responses.contact_responses
lagged_share, sliding_speed, twist_response = _laws.lagged_share, _laws.sliding_speed, _responses.twist_response


@wp.kernel
def impulses(
    p: wp.array(dtype=wp.vec3), u: wp.array(dtype=wp.vec3), n: wp.array(dtype=wp.vec3), laws: wp.array2d(dtype=float),
    out: wp.array2d(dtype=wp.vec3),
):  # fmt: skip
    i = wp.tid()
    mu, cohesion = laws[i, 0], laws[i, 1]
    x, y, z, load = best_impulse(p[i], u[i], n[i], mu, cohesion, laws[i, 2], laws[i, 3], laws[i, 4], lagged_share(mu))
    out[i, 0] = wp.vec3(x, y, z)
    ex, ey, ez = best_torque(p[i], u[i], n[i], mu * load, cohesion * load, laws[i, 3])
    out[i, 1] = wp.vec3(ex, ey, ez)
    tx, ty, tz = turned_into_cone(p[i], n[i], mu, cohesion)
    out[i, 2] = wp.vec3(tx, ty, tz)
    qx, qy, qz, _ = project(p[i], n[i], mu, cohesion)
    out[i, 3] = wp.vec3(qx, qy, qz)
    out[i, 4] = wp.vec3(load, sliding_speed(u[i], n[i]), bias_of(p[i][0], 1.0, 2.0, laws[i, 3], 0.1, 0.2))


def test_impulses_are_those_of_the_plain_functions():
    rng = np.random.default_rng(0)
    p, u, n = rng.normal(size=(3, N, 3))
    n /= np.linalg.norm(n, axis=1)[:, None]
    laws = np.column_stack([rng.choice((0.0, 0.3, 2.0), N), rng.choice((0.0, 0.4), N), *rng.uniform(0.2, 2.0, (3, N))])
    out = wp.zeros((N, 5), dtype=wp.vec3, device=DEVICE)
    vectors = [wp.array(v, dtype=wp.vec3, device=DEVICE) for v in (p, u, n)]
    wp.launch(impulses, N, [*vectors, wp.array(laws, dtype=float, device=DEVICE), out], device=DEVICE)
    expected = []
    for p_, u_, n_, (mu, cohesion, slip, wn, wt) in zip(*(map(tuple, v.tolist()) for v in (p, u, n)), laws.tolist()):
        *best, load = cones.best_impulse(p_, u_, n_, mu, cohesion, slip, wn, wt, contact_laws.lagged_share(mu))
        torque = cones.best_torque(p_, u_, n_, mu * load, cohesion * load, wn)
        turned, nearest = cones.turned_into_cone(p_, n_, mu, cohesion), cones.project(p_, n_, mu, cohesion)[:3]
        numbers = load, contact_laws.sliding_speed(u_, n_), contact_laws.bias_of(p_[0], 1.0, 2.0, wn, 0.1, 0.2)
        expected.append((best, torque, turned, nearest, numbers))
    assert np.allclose(out.numpy(), expected, rtol=2e-5, atol=2e-5)


@wp.kernel
def bounded(
    ja: wp.array(dtype=vec6), jb: wp.array(dtype=vec6), arm_a: wp.array(dtype=wp.vec3), arm_b: wp.array(dtype=wp.vec3),
    frame: wp.array2d(dtype=wp.vec3), out: wp.array(dtype=wp.vec4),
):  # fmt: skip
    i = wp.tid()
    normal, across, trace = contact_responses(0.7, ja[i], jb[i], arm_a[i], arm_b[i], frame[i, 0], frame[i, 1], frame[i, 2])
    out[i] = wp.vec4(normal, across, trace, twist_response(ja[i], jb[i]))


def test_responses_are_those_of_the_plain_functions():
    rng = np.random.default_rng(1)
    root = rng.normal(size=(2, N, 3, 3))
    rows, columns = np.triu_indices(3)
    ja, jb = (root @ root.transpose(0, 1, 3, 2))[:, :, rows, columns]
    arm_a, arm_b, n = rng.normal(size=(3, N, 3))
    n /= np.linalg.norm(n, axis=1)[:, None]
    frame = np.array([[one, *np.reshape(tangents(*one), (2, 3))] for one in n])
    out = wp.zeros(N, dtype=wp.vec4, device=DEVICE)
    arrays = [wp.array(v, dtype=kind, device=DEVICE) for v, kind in ((ja, vec6), (jb, vec6), (arm_a, wp.vec3), (arm_b, wp.vec3))]
    wp.launch(bounded, N, [*arrays, wp.array(frame, dtype=wp.vec3, device=DEVICE), out], device=DEVICE)
    for k, found in enumerate(out.numpy()):
        expected = responses.contact_responses(0.7, ja[k], jb[k], arm_a[k], arm_b[k], *frame[k])
        assert np.allclose(found, (*expected, responses.twist_response(ja[k], jb[k])), rtol=2e-5)
