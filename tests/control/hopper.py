"""A scene file with what an exported machine must carry: an inlet, what is taken out, a motor by a table, a belt, a driven paddle, and
names that are no identifiers."""

HOPPER = """
title: an inlet over a lift
simulation: {dt: 0.002, time: 1.0}
materials:
  sand: {density: 2500, friction: 0.5}
bodies:
  - name: belt
    shape: {box: {half_extents: [1, 1, 0.1]}}
    position: [0, 0, -0.1]
    fixed: true
    material: sand
    surface_velocity: [0.5, 0, 0]
  - {name: left wheel, shape: {box: {half_extents: [0.2, 0.2, 0.05]}}, position: [0, 0, 0.3], material: sand}
  - name: paddle
    shape: {box: {half_extents: [0.05, 0.3, 0.05]}}
    position: [0.6, 0, 0.2]
    material: sand
    motion: {constant: {angular_velocity: [0, 0, 1]}}
grains:
  - name: poured
    shape: {sphere: {radius: 0.02}}
    material: sand
    placement: {pour: {inlet: {box: {low: [-0.15, -0.15, 0.5], high: [0.15, 0.15, 0.7]}}, number_rate: 300}}
  - name: row
    shape: {sphere: {radius: 0.02}}
    material: sand
    placement: {lattice: {low: [-0.5, -0.5, 0.0], high: [-0.4, -0.3, 0.06], spacing: 0.05}}
joints:
  - prismatic:
      name: lift.main
      between: [world, left wheel]
      axis: [0, 0, 1]
      limits: [-0.2, 0.25]
      motor: {position: {times: [0, 1], values: [0, 0.1]}}
removals:
  - {below: -0.5}
"""
