"""One of every shape dropped onto hilly ground, and a ray that measures how high they lie. Writes every_shape.vtkhdf."""

import numpy as np

import gravel as gv

rng = np.random.default_rng(0)
stone = gv.Material(density=2600, friction=0.6)
scene = gv.Scene()
ground = gv.HeightField.from_function(lambda x, y: 0.1 * np.sin(2 * x) * np.cos(2 * y) + 0.05 * (x**2 + y**2), (-2, -2), (2, 2), 0.1)
scene.add_body(ground, material=stone, fixed=True)
shapes = [
    gv.Sphere(0.12),
    gv.Ellipsoid((0.2, 0.12, 0.08)),
    gv.Capsule(radius=0.08, half_length=0.12),
    gv.Cylinder(radius=0.12, half_length=0.1),
    gv.Cone(radius=0.14, height=0.3),
    gv.Box((0.12, 0.1, 0.08)),
    gv.ConvexHull(rng.normal(size=(20, 3)) * 0.1),
    gv.Compound([(gv.Box((0.2, 0.04, 0.04)), (0, 0, 0)), (gv.Sphere(0.08), (0.2, 0, 0)), (gv.Sphere(0.08), (-0.2, 0, 0))]),
    gv.Clump(positions=[(-0.1, 0, 0), (0, 0.05, 0), (0.1, 0, 0)], radii=[0.08, 0.1, 0.08]),
]
for k, shape in enumerate(shapes):
    scene.add_body(shape, (0.5 * (k % 3) - 0.5, 0.5 * (k // 3) - 0.5, 0.6), stone, quaternion=rng.normal(size=4))

sim = gv.Simulation(scene, dt=1 / 500)
sim.run(until=1.0, save="every_shape.vtkhdf", every=0.05)
print(sim.report)

hits = sim.cast_rays(origins=np.column_stack([np.linspace(-1, 1, 9), np.zeros(9), np.full(9, 5.0)]), directions=(0, 0, -1))
print("height under each ray:", np.round(hits.point[:, 2], 3), "of body", hits.body)
assert (hits.body >= 0).all() and np.isfinite(sim.positions).all()
