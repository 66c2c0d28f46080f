"""Checkpoints that are damaged by chance or on purpose: refused with one kind of error that names the file, and nothing is followed out
of it."""

import json

import h5py
import numpy as np
import pytest

import gravel as gv
from gravel.io import checksummed

REFUSED = r"^.*c\.h5 (is|has) .*"


@pytest.fixture(scope="module")
def content(tmp_path_factory):
    """A checkpoint with all that there is: shapes with geometries, joints, contacts, removed bodies, a motion."""
    scene = gv.Scene()
    scene.add_body(gv.Plane(), fixed=True)
    scene.add_bodies(gv.Sphere(0.1), [(0, 0, 0.1), (0.19, 0, 0.1), (5, 5, 5)])
    cube = np.array([(x, y, z) for x in (0, 0.2) for y in (0, 0.2) for z in (0, 0.2)])
    scene.add_body(gv.ConvexHull(cube), (1, 0, 0.2))
    scene.add_body(gv.Compound([(gv.Sphere(0.1), (0, 0, 0)), (gv.ConvexHull(cube), (0.1, 0, 0))]), (2, 0, 0.3))
    scene.add_body(gv.Mesh([(0, 0, 0), (1, 0, 0), (0, 1, 0)], [(0, 1, 2)], sheet=True), (0, 3, 0), fixed=True)
    lid = scene.add_body(gv.Box((0.1, 0.1, 0.1)), (3, 0, 1))
    scene.add_joint(gv.Revolute(None, lid, (3, 0, 1.2), (0, 1, 0), motor=gv.SpeedMotor(1.0)))
    scene.add_body(gv.Box((0.1, 0.1, 0.1)), (0, -3, 1), motion=gv.ConstantVelocity((1, 0, 0)))
    sim = gv.Simulation(scene, 1e-3)
    for _ in range(20):
        sim.step()
    sim.remove([3])
    path = tmp_path_factory.mktemp("good") / "c.h5"
    sim.save(path)
    assert gv.Simulation.load(path).state_hash() == sim.state_hash()
    return path.read_bytes()


def refused(path):
    with pytest.raises(ValueError, match=REFUSED):
        gv.Simulation.load(path)


@pytest.mark.parametrize("seed", range(8))
def test_every_flipped_bit_is_noticed(content, seed, tmp_path):
    rng, path = np.random.default_rng(seed), tmp_path / "c.h5"
    for _ in range(50):
        damaged = bytearray(content)
        damaged[rng.integers(len(damaged))] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        refused(path)


@pytest.mark.parametrize("seed", range(4))
def test_files_that_end_early_or_hold_other_bytes_are_refused(content, seed, tmp_path):
    rng, path = np.random.default_rng(100 + seed), tmp_path / "c.h5"
    for _ in range(10):
        path.write_bytes(content[: rng.integers(len(content))])
        refused(path)
        at, length = rng.integers(len(content)), rng.integers(1, 4000)
        path.write_bytes(content[:at] + rng.bytes(length) + content[at + length :])
        refused(path)
    path.write_bytes(content + b" ")
    refused(path)


def tampered(content, path, function):
    """The checkpoint after ``function(file)``, with a seal that fits."""
    path.write_bytes(content[: -checksummed.SEAL_BYTES])
    with h5py.File(path, "r+") as file:
        function(file)
    checksummed.seal(path)
    return path


def put(name, index, value):
    def change(file):
        array = file[name][()]
        array[index] = value
        file[name][...] = array

    return change


def other(name, make):
    """Another array instead of one of the file's."""

    def change(file):
        array = file[name][()]
        del file[name]
        file[name] = make(array)

    return change


def outside(file):
    del file["gravity"]
    file["gravity"] = h5py.ExternalLink("elsewhere.h5", "/secret")


def soft(file):
    del file["gravity"]
    file["gravity"] = h5py.SoftLink("/world")


def virtual(file):
    layout = h5py.VirtualLayout((3,), "f8")
    layout[:] = h5py.VirtualSource("elsewhere.h5", "secret", (3,))
    del file["gravity"]
    file.create_virtual_dataset("gravity", layout)


def described(**changes):
    def change(file):
        about = json.loads(file.attrs["description"])
        about.update(changes)
        file.attrs["description"] = json.dumps(about)

    return change


HARM = {
    "link to another file": outside,
    "link within the file": soft,
    "data of another file": virtual,
    "material": put("bodies/tag", (1, 1), 7),
    "negative material": put("bodies/tag", (1, 1), -1),
    "shape": put("bodies/tag", (1, 0), 99),
    "group": put("bodies/tag", (1, 2), 1000),
    "status": put("bodies/tag", (1, 3), 9),
    "asleep on no island": put("bodies/tag", (1, 3), 3),
    "island of nobody": put("bodies/island", 1, 10**6),
    "looks at sleepers": put("sleep/clock", 1, 7.0),
    "geometry": put("bodies/geometry", 3, 50),
    "geometry of another shape": put("bodies/tag", (1, 0), 6),
    "id": put("bodies/id", 2, 10**6),
    "id twice": put("bodies/id", 2, 0),
    "position": put("bodies/position", (2, 0), np.nan),
    "quaternion": put("bodies/quaternion", 2, 0.0),
    "other byte order": other("bodies/position", lambda a: a.astype(">f8")),
    "text": other("bodies/position", lambda a: np.array([b"x"] * len(a))),
    "shape of an array": other("bodies/velocity", lambda a: a[:, :3]),
    "fewer rows": other("bodies/velocity", lambda a: a[:-1]),
    "missing": lambda file: file.__delitem__("bodies/force"),
    "neighbours of a corner": put("geometries/neighbours", 0, 10**6),
    "corner of a triangle": put("geometries/triangles", (0, 0), 99),
    "tree": other("geometries/boxes", lambda a: a[:-1]),
    "part": put("geometries/parts", 0, 77),
    "rows": put("geometries/rows/vertices", 0, -4),
    "memory": put("memory/number", 0, 10**6),
    "body of a joint": put("joints/joint_body_b", 0, 10**6),
    "joint of a row": put("joints/row_joint", 0, 12),
    "gauge": put("joints/row_gauge", 0, 99),
    "coordinate": put("joints/coordinates", (0, 0), 5.0),
    "settings": described(settings={"dt": "x"}),
    "solver": described(solver=["magic", {}]),
    "count": described(count=2),
    "description": lambda file: file.attrs.modify("description", "{"),
    "no description": lambda file: file.attrs.__delitem__("description"),
}


@pytest.mark.parametrize("harm", HARM)
def test_what_was_changed_on_purpose_is_refused(harm, content, tmp_path):
    refused(tampered(content, tmp_path / "c.h5", HARM[harm]))


def test_a_file_that_was_sealed_again_without_a_change_is_good(content, tmp_path):
    path = tampered(content, tmp_path / "c.h5", lambda file: None)
    assert gv.Simulation.load(path).steps == 20


@pytest.mark.parametrize("threads", [0, -1, "two"])
def test_bad_arguments_are_not_blamed_on_the_file(threads, content, tmp_path):
    (tmp_path / "c.h5").write_bytes(content)
    with pytest.raises((ValueError, TypeError), match="threads"):
        gv.Simulation.load(tmp_path / "c.h5", threads=threads)
