"""Pictures from Python: of a scene before the run, of the run from another side, and with the forces between the stones."""

import gravel as gv

scene = gv.Scene()
stone = gv.Material(density=2400, friction=0.6)
scene.add_body(gv.Plane(), material=stone, fixed=True)
for layer in range(6):
    for k in range(6 - layer):
        scene.add_body(gv.Box((0.1, 0.05, 0.05)), (0.22 * (k + 0.5 * layer), 0, 0.05 + 0.1 * layer), stone)
gv.picture(scene, "stones.png", size=(640, 480))

sim = gv.Simulation(scene, dt=1e-3)
sim.run(until=0.2, save="stones.vtkhdf", contacts=True)
gv.picture(sim, "stones_front.png", camera="front", colour="material", size=(640, 480))
gv.picture("stones.vtkhdf", "stones_forces.png", frame=-1, forces=True, size=(640, 480))
print(f"{sim}: see stones.png, stones_front.png and stones_forces.png")
