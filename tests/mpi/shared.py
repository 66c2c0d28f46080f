"""Processes that share a scene, for tests of their files: a team by mpi4py or by threads, and simulations that are the same on all ranks,
of which each writes its share. What they write together must be what one of them would write alone."""

import os
import pathlib
import subprocess
import sys
import threading

import numpy as np

import gravel as gv
from gravel.state import STATUS, can_move

HERE = pathlib.Path(__file__).parent
MPIEXEC = str(pathlib.Path(sys.executable).with_name("mpiexec"))  # the extra mpi brings it


class MpiTeam:
    """``gravel.running.communicator.Communicator`` of all processes that mpiexec has started."""

    def __init__(self):
        from mpi4py import MPI

        self.world, self.yes, self.no = MPI.COMM_WORLD, MPI.LAND, MPI.LOR
        self.rank, self.size = self.world.rank, self.world.size

    def gather(self, value):
        return self.world.gather(value)

    def broadcast(self, value):
        return self.world.bcast(value)

    def all(self, flag):
        return self.world.allreduce(bool(flag), self.yes)

    def any(self, flag):
        return self.world.allreduce(bool(flag), self.no)

    def barrier(self):
        self.world.barrier()


class ThreadTeam:
    """The same of threads: whoever waits for one that does not come fails."""

    def __init__(self, rank, barrier, values):
        self.rank, self.size, self.meet, self.values = rank, barrier.parties, barrier, values

    def everybody(self, value):
        self.values[self.rank] = value
        self.meet.wait()
        values = list(self.values)
        self.meet.wait()
        return values

    def gather(self, value):
        values = self.everybody(value)
        return None if self.rank else values

    def broadcast(self, value):
        return self.everybody(value)[0]

    def all(self, flag):
        return all(self.everybody(flag))

    def any(self, flag):
        return any(self.everybody(flag))

    def barrier(self):
        self.meet.wait()


def in_threads(size, function):
    """What ``function(team)`` returns or raises, on each of so many ranks."""
    barrier, values, outcome = threading.Barrier(size, timeout=30), [None] * size, [None] * size

    def call(rank):
        try:
            outcome[rank] = function(ThreadTeam(rank, barrier, values))
        except BaseException as error:
            outcome[rank] = error

    threads = [threading.Thread(target=call, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcome


class Shared(gv.Simulation):
    """All bodies on all ranks; body k is written by rank k modulo their number, fixed ones by rank 0."""

    def owner_of(self, ids):
        movable = can_move(self.engine.pick("tag", ids)[:, STATUS])
        return np.where(movable, ids % self.team.size, 0)

    def own_ids(self):
        ids = self.engine.ids()
        return ids[self.owner_of(ids) == self.team.rank]

    def owns_contacts(self, a, b):
        """Whose contact it is: that of the body that can move, of two the second's."""
        owner = np.where(can_move(self.engine.pick("tag", b)[:, STATUS]), self.owner_of(b), self.owner_of(a))
        return owner == self.team.rank

    @property
    def contacts(self):
        table = super().contacts
        return table[self.owns_contacts(table.body_a, table.body_b)]

    def memory(self):
        """The engine's memory, of the own contacts."""
        memory = type(self.engine).memory(self.engine)
        row = np.repeat(np.arange(len(memory["number"])), memory["number"])
        own = self.owns_contacts(memory["a"], memory["b"])
        for name in ("a", "b", "feature", "impulse", "torque"):
            memory[name] = memory[name][own] if len(memory[name]) else memory[name]
        own_slept = self.owns_contacts(memory["slept_a"], memory["slept_b"])
        memory.update({name: array[own_slept] for name, array in memory.items() if name.startswith("slept")})
        return {**memory, "number": np.bincount(row[own], minlength=len(memory["number"])).astype(np.int32)}


def shared(simulation, team):
    """The same simulation, as one of a team."""
    simulation.__class__, simulation.team = Shared, team
    simulation.engine.memory = simulation.memory
    return simulation


def heap(**options):
    """Balls that touch each other, a floor and a box with a motion, and a hull on a hinge; on one thread."""
    scene = gv.Scene()
    scene.add_body(gv.Plane(), fixed=True)
    scene.add_body(gv.Box((0.2, 0.2, 0.05)), (0, 0, 0.05), motion=gv.ConstantVelocity((0.1, 0, 0)))
    radii = np.linspace(0.05, 0.1, 6)
    x = np.concatenate([[-0.1, 0.05], 0.35 + np.cumsum([0.0, *2 * np.sqrt(radii[2:-1] * radii[3:])])])
    scene.add_bodies(gv.Sphere(radii), np.stack([x, 0 * x, radii + 0.1 * (x < 0.2)], axis=1))
    hull = scene.add_body(gv.ConvexHull(np.vstack([np.zeros(3), np.eye(3)]), 0.2), (0, 1, 0.3))
    scene.add_joint(gv.Revolute(None, hull, point=(0, 1, 0.5), axis=(0, 1, 0)))
    return gv.Simulation(scene, 1e-3, threads=1, domain=None, **options)


def come_and_go(sim):
    """A ball goes, and another one and a hull come."""
    if sim.steps == 35:
        sim.remove([3])
        sim.add_bodies(gv.Sphere(0.07), [[0, 2, 0.07]])
        sim.add_bodies(gv.ConvexHull(0.5 * np.vstack([np.zeros(3), np.eye(3)])), [(0, 4, 1)])


def run_ranks(ranks, script, folder, fails=False):
    """Run Python on so many processes, in a folder; what they print. ``team`` and all that is here are there."""
    begin = f"import sys\nsys.path.insert(0, {str(HERE)!r})\nfrom shared import *\nimport signal\nteam = MpiTeam()\n"
    command = [MPIEXEC, "-n", str(ranks), sys.executable, "-m", "mpi4py", "-c", begin + script]
    environment = {**os.environ, "NUMBA_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, env=environment)
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stdout + done.stderr
