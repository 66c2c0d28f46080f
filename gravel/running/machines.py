"""Joints while a simulation runs.

In: a ``Mechanism`` (all joints as a scene describes them), and an engine that solves them. ``Machines`` tells the engine of the joints and
of the pairs of bodies that may not touch (the collision filter), assembles them before the first step, evaluates motors and springs that
are functions in each step, and breaks joints that bear too much. Of several processes one solves the joints
(``Processes.solves_joints``); the methods are called on all.
"""

from collections.abc import Collection, Iterable

import numpy as np

from gravel import checks
from gravel.engine import Engine
from gravel.errors import SimulationError
from gravel.joints.drives import Motor
from gravel.joints.kinds import SLIDES, TURNS, AnyJoint
from gravel.joints.mechanism import Mechanism
from gravel.joints.table import JointTable, joint_table
from gravel.running.bodies import PresentBodies
from gravel.running.processes import Processes
from gravel.running.step_times import StepTimes
from gravel.state import Views

ASSEMBLY_ROUNDS = 100  # of Newton's method, to close joints at the start
CLOSED, ASSEMBLED = 1e-10, 1e-7  # of the longest joint row's scale: closed enough to stop; open by more is refused


class Machines:
    """The joints of a simulation at run time. ``directly``: all rows are solved at once, not one after the other."""

    def __init__(self, mechanism: Mechanism, engine: Engine, processes: Processes, directly: bool):
        self.mechanism, self.engine, self.processes, self.directly = mechanism, engine, processes, directly

    @property
    def solved_here(self) -> bool:
        """Whether there are joints, and this is the process that solves them."""
        return len(self.mechanism) > 0 and self.processes.solves_joints

    # --- what the engine is told
    def upload(self) -> None:
        """The engine is told of the joints and of the collision filter, if they have changed."""
        if self.mechanism.changed:
            self.engine.set_joints(self.mechanism.arrays(self.directly) if self.solved_here else None)
            self.mechanism.changed = False
            self._update_collision_filter()

    def keep(self) -> None:
        """The mechanism is told what the engine has changed of the joints, before some are added or a file is written."""
        self.upload()
        if self.solved_here or not len(self.mechanism):
            self.mechanism.keep(self.engine.joint_state())

    def _update_collision_filter(self):
        """Collision filter: bodies that are joined do not collide, unless their joint allows it or is broken."""
        broken = self.engine.joint_state().broken if self.solved_here else np.zeros(len(self.mechanism), np.uint8)
        (broken,) = self.processes.broadcast_from_joint_rank(broken)
        self.engine.set_filtered_pairs(self.mechanism.pairs_to_filter(broken))

    # --- before the first step
    def assemble(self, driven: Collection[int]) -> None:
        """Joints are closed where that was asked for, and velocities that they do not allow are taken out."""
        if self.mechanism.open and self.solved_here:
            self._close()
        self.mechanism.open = False
        self.align(range(len(self.mechanism)), driven)

    def _close(self):
        self.engine.set_joints(self.mechanism.arrays(directly=True))
        reach = max(self.mechanism.row_values["scale"], default=1.0)
        for _ in range(ASSEMBLY_ROUNDS):
            if np.max(self.engine.joint_state().violation) <= CLOSED * reach:
                break
            self.engine.close_joints()
        violation = self.engine.joint_state().violation
        if not np.max(violation) <= ASSEMBLED * reach:
            worst = self.mechanism.names[int(np.nanargmax(violation))]
            raise ValueError(f"the joints cannot be assembled: {worst} is still {np.max(violation):g} m from being closed")

    def align(self, joints: Iterable[int], driven: Collection[int]) -> None:
        """Take out velocities that these joints, and those connected with them, do not allow; unless they hang on a body that is
        ``driven`` by a motion, whose velocity only the step knows."""
        self.upload()
        if self.solved_here:
            self.engine.align_joints(self.mechanism.connected(joints, self.engine.joint_state(), driven))

    # --- in a step
    def drive(self, times: StepTimes) -> None:
        """Joints are measured; motors and springs that are functions of time or place are evaluated."""
        if self.solved_here:
            value, rate = self.engine.measure_joints()
            for row, numbers in self.mechanism.evaluate(times.look, times.end, times.dt, value, rate):
                self.engine.set_laws(row, numbers)

    def break_overloaded(self) -> int:
        """Joints whose load is too high break; returns how many."""
        if not len(self.mechanism):
            return 0
        broken = self.mechanism.overloaded(self.engine.joint_state()) if self.solved_here else ()
        if len(broken):
            self.engine.break_joints(broken)
        (number,) = map(int, self.processes.total(len(broken)))
        if number:
            self._update_collision_filter()
        return number

    # --- between steps
    def add(self, joint: AnyJoint, views: Views, driven: Collection[int]) -> int:
        """Join two bodies as they lie now, with all that users wrote into ``views``; returns the joint's id."""
        if self.processes.size > 1:
            raise SimulationError("joints must be part of the scene where several processes share it: scene.add_joint")
        views.flush_writes()
        self.engine.wake(None)
        self.keep()
        number = self.mechanism.add(joint, PresentBodies(self.engine, views.count))
        self.align([number], driven)
        views.refresh()
        return number

    def release(self, joint: int) -> None:
        """Take a joint out."""
        self.check_joint(joint)
        self.upload()
        self.engine.wake(None)
        if self.solved_here:
            self.engine.break_joints([joint])
        self._update_collision_filter()

    def release_joints_of(self, bodies: np.ndarray) -> None:
        """Take out the joints of bodies that go."""
        if not len(self.mechanism):
            return
        self.upload()
        if self.solved_here:
            self.engine.break_joints(self.mechanism.joints_of(bodies.tolist(), self.engine.joint_state().broken))
        self._update_collision_filter()

    def set_motor(self, joint: int, motor: Motor, coordinate: str | None) -> None:
        """Replace the motor of a joint; ``coordinate`` "slide" or "angle", None: the one that has a motor."""
        self.check_joint(joint)
        if coordinate is not None:
            checks.choice("coordinate", coordinate, ("slide", "angle"))
        self.upload()
        gauges = {None: None, "slide": SLIDES, "angle": TURNS}[coordinate]
        row, numbers = self.mechanism.set_motor(joint, motor, gauges)
        if self.solved_here:
            self.engine.set_laws(row, numbers)

    def check_joint(self, joint: int) -> None:
        if checks.count("joint", joint) >= len(self.mechanism):
            raise ValueError(f"joint must be an id below {len(self.mechanism)}, not {joint}")

    def table(self) -> JointTable:
        """The joints as they are now."""
        self.upload()
        if not self.processes.solves_joints:
            raise SimulationError("joints are known to the process that solves them: sim.gather('joints') brings them to the first")
        return joint_table(self.mechanism.coordinates, self.engine.joint_state())
