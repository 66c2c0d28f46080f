"""A result as tables: reports over time and contacts with pandas, all frames with xarray. Needs: pip install pandas xarray."""

import gravel as gv

scene = gv.Scene()
floor = scene.add_body(gv.Plane(), fixed=True)
walls = [scene.add_body(gv.Plane(normal, -0.3), fixed=True) for normal in ((1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0))]
balls = gv.pack(gv.Sphere, gv.BoxRegion((-0.3, -0.3, 0.5), (0.3, 0.3, 1.1)), count=150, sizes=gv.UniformSizes(0.03, 0.05))
grains = balls.add_to(scene)
sim = gv.Simulation(scene, dt=1 / 500)
print(sim.run(until=1.5, save="drop.vtkhdf", every=0.02, contacts=True))

with gv.open_result("drop.vtkhdf") as result:
    reports = result.to_pandas()  # a row for each step, by time
    print(reports.loc[:, ["contacts", "iterations", "kinetic_energy"]].iloc[::150])
    busiest = reports.iterations.idxmax()
    print(f"most iterations at t = {busiest:.3f} s: {reports.iterations[busiest]}; columns in {reports.attrs['units']}")

    frame = result[-1]
    bodies, contacts = frame.to_pandas(), frame.contacts.to_pandas()
    carried = contacts.groupby("body_a").impulse_z.sum() / frame.dt  # N, by each floor or wall (planes come first)
    weight = 9.81 * bodies.mass[bodies.movable].sum()
    by_walls = carried.reindex(walls).sum()
    print(f"the floor carries {carried[floor]:.0f} N and friction at the walls {by_walls:.0f} N, the grains weigh {weight:.0f} N")

    data = result.to_xarray("positions")  # time, body, axis
    height = data.positions.sel(body=grains, axis="z").mean("body")
    falling = height.sel(time=slice(0, 0.2))
    fallen, seconds = float(falling[0] - falling[-1]), float(falling.time[-1])
    print(f"in the first {seconds:.2f} s they fall {fallen:.4f} m, in free flight it would be {0.5 * 9.81 * seconds**2:.4f} m")
assert abs((carried[floor] + by_walls) / weight - 1) < 0.01 and abs(fallen / (0.5 * 9.81 * seconds**2) - 1) < 0.01
