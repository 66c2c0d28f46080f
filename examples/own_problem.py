"""A cone problem of one's own: three balls in a row, pushed against a wall, solved by all four solvers."""

import numpy as np

import gravel as gv

n = np.array([[1.0, 0, 0]] * 3)  # contacts 0-1, 1-2 and 2-wall, all along x
radius, mass = 0.5, 2.0
inertia = np.zeros((4, 3, 3))
inertia[:3] = np.eye(3) / (0.4 * mass * radius**2)
problem = gv.ConeProblem(
    body_a=[0, 1, 2],
    body_b=[1, 2, 3],
    normal=n,
    arm_a=radius * n,
    arm_b=-radius * n,
    friction=[0.5, 0.5, 0.5],
    inverse_mass=[1 / mass, 1 / mass, 1 / mass, 0],
    inverse_inertia=inertia,
    velocity=[[3.0, 0, 0, 0, 0, 0]] + [[0.0] * 6] * 3,
)
for solver in (gv.GaussSeidel, gv.Jacobi, gv.APGD, gv.BarzilaiBorwein):
    solution = solver(iterations=2000, tolerance=1e-9).solve(problem)
    print(f"{solver.__name__:16} impulses {np.round(solution.impulses[:, 0], 6)}, residual {solution.residual:.1e} m/s")
    assert np.allclose(solution.impulses[:, 0], 6.0)  # everything stops: each contact passes on the whole momentum
