"""Damaged files: whatever reads a file gives finite numbers, or says in one sentence which file is bad and why.

Each format has a small good file and SEEDS damages of it, always the same. HDF5 files are read in a child process, one for each format,
since damage may crash the library: then the seed that did it fails, and another child goes on with the next one.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import types
import warnings

import h5py
import numpy as np
import pytest
import scipy.sparse
import trimesh

import gravel as gv
from gravel.io import about, vtkhdf

SEEDS = 60
PATIENCE = 30  # s, for all damages of a format
NUMBER = re.compile(rb"(?<![\w.])-?\d+\.?\d*(?:e-?\d+)?(?![\w.])")
ODD = (b"nan", b"inf", b"-inf", b"1e308", b"1e-320", b"-1", b"0", b"99999999999999999999", b"", b"x", b"1 2", b"0x1p3")


# --- damages: bytes and a random generator in, other bytes out
def flip_bits(data, rng):
    data = bytearray(data)
    for place in rng.choice(places(data), rng.integers(1, 5)):
        data[place] ^= 1 << rng.integers(8)
    return bytes(data)


def overwrite(data, rng):
    data, place, length = bytearray(data), rng.choice(places(data)), rng.integers(1, 40)
    length = min(length, len(data) - place)
    fill = rng.choice(["zeros", "ones", "noise"])
    data[place : place + length] = {"zeros": bytes(length), "ones": b"\xff" * length, "noise": rng.bytes(length)}[fill]
    return bytes(data)


def cut(data, rng):
    return data[: rng.integers(len(data))]


def leave_out(data, rng):
    first, last = sorted(rng.integers(0, len(data), 2))
    return data[:first] + data[min(last, first + 200) :]


def swap(data, rng):
    """Two pieces change places."""
    a, b, c, d = sorted(rng.integers(0, len(data), 4))
    return data[:a] + data[c:d] + data[b:c] + data[a:b] + data[d:]


def double(data, rng):
    a, b = sorted(rng.integers(0, len(data), 2))
    return data[:b] + data[a:b] + data[b:]


def swap_lines(data, rng):
    lines = data.split(b"\n")
    a, b = rng.integers(0, len(lines), 2)
    lines[a], lines[b] = lines[b], lines[a]
    return b"\n".join(lines)


def spoil_numbers(data, rng):
    """A number of a text becomes something else."""
    found = list(NUMBER.finditer(data))
    if not found:
        return data
    one = found[rng.integers(len(found))]
    return data[: one.start()] + ODD[rng.integers(len(ODD))] + data[one.end() :]


def places(data):
    """Where a file holds something: most of an HDF5 file is empty."""
    return np.flatnonzero(np.frombuffer(bytes(data), np.uint8))


OF_BYTES = (flip_bits, overwrite, cut, leave_out)
OF_TEXT = (flip_bits, overwrite, cut, leave_out, swap, double, swap_lines)


def spoil_items(path, rng):
    """Something in an HDF5 file becomes something else, which HDF5 itself does not mind."""
    with h5py.File(path, "r+") as file:
        names = []
        file.visit(names.append)
        name = names[rng.integers(len(names))]
        item, action = file[name], rng.integers(7)
        if action == 0:
            del file[name]
        elif action == 1 and item.attrs:
            item.attrs[rng.choice(list(item.attrs))] = rng.choice([-1, 3, 10**9])
        elif action == 2:
            del file[name]
            file[name] = h5py.ExternalLink(__file__, "x")
        elif action == 3:
            del file[name]
            file.create_group(name)
        elif isinstance(item, h5py.Dataset):
            values = item[()]
            del file[name]
            if action == 4:
                rows = np.shape(values)[1:]
                file.create_dataset(name, (2**40, *rows), "f8", maxshape=(None,) * (1 + len(rows)), chunks=(16,) * (1 + len(rows)))
            elif action == 5:
                with np.errstate(all="ignore"):
                    file[name] = rng.choice([np.nan, np.inf, -1e308, 2.0**62, -1.0], values.shape).astype(values.dtype)
            else:
                file[name] = ("words", b"bytes")[rng.integers(2)]


def damage(path, good, seed):
    """Write the file with one or two damages; those of odd seeds leave the form and change what the file says."""
    rng = np.random.default_rng(seed)
    is_hdf5 = good[:4] == b"\x89HDF"
    if is_hdf5 and seed % 2:
        path.write_bytes(good)
        for _ in range(rng.integers(1, 3)):
            spoil_items(path, rng)
        return
    kinds = OF_BYTES if is_hdf5 or b"\0" in good else (spoil_numbers,) if seed % 2 else OF_TEXT
    data = good
    for _ in range(rng.integers(1, 3)):
        if len(places(data)) > 1:
            data = kinds[rng.integers(len(kinds))](data, rng)
    path.write_bytes(data)


# --- good files
def write_result(path):
    """Two frames of a box, a hull and a plane; the reports and the joint are written by hand, so that nothing is compiled for them."""
    scene = gv.Scene()
    scene.add_body(gv.Plane(), fixed=True)
    scene.add_body(gv.Box((0.1, 0.1, 0.1)), (0, 0, 1))
    scene.add_body(gv.ConvexHull(np.vstack([np.zeros(3), np.eye(3)])), (1, 1, 1))
    with vtkhdf.ResultWriter(path, gv.Simulation(scene, 1e-3)) as writer:
        writer.write_frame()
        writer.observe(types.SimpleNamespace(**dict.fromkeys(vtkhdf.REPORT_FIELDS, 0.5), seconds={"solve": 0.1}))
        writer.write_frame()
    with h5py.File(path, "r+") as file:
        joints = file["gravel/joints"]
        joints.attrs["names"] = ["joint 0 (Revolute between the world and body 1)"]
        for name in vtkhdf.JOINT_FIELDS:
            joints[name].resize((2, 1, *joints[name].shape[2:]))
            joints[name][...] = np.nan if name == "slide" else 0.25
        for name in about.ANCHORS:
            joints[name].resize(1, axis=0)
            joints[name][...] = 1


def write_fclib(path):
    """Two contacts: as a local problem, or as a global one of two bodies."""
    rng = np.random.default_rng(1)
    M, H = np.diag(rng.uniform(1, 3, 6)), rng.normal(size=(6, 6))
    matrices = {"W": H.T @ H} if "local" in path.name else {"M": M, "H": H}
    vectors = {"q": rng.normal(size=6)} if "local" in path.name else {"f": rng.normal(size=6), "w": rng.normal(size=6)}
    with h5py.File(path, "w") as file:
        group = file.create_group("fclib_local" if "local" in path.name else "fclib_global")
        group["spacedim"] = [3]
        for name, values in {**vectors, "mu": [0.3, 0.7]}.items():
            group[f"vectors/{name}"] = values
        for name, values in matrices.items():
            matrix = scipy.sparse.csc_matrix(values) if name != "H" else scipy.sparse.coo_matrix(values)
            is_triplets = name == "H"
            i, p = (matrix.row, matrix.col) if is_triplets else (matrix.indices, matrix.indptr)
            parts = {"m": [6], "n": [6], "nz": [matrix.nnz if is_triplets else -1], "nzmax": [matrix.nnz], "i": i, "p": p, "x": matrix.data}
            for part, numbers in parts.items():
                group[f"{name}/{part}"] = numbers


URDF = """<?xml version="1.0"?>
<robot name="arm">
  <link name="base"><inertial><origin xyz="0 0 0.1" rpy="0 0.2 0"/><mass value="5"/>
    <inertia ixx="0.02" iyy="0.03" izz="0.04" ixy="0.001" ixz="0" iyz="0"/></inertial>
    <collision><geometry><box size="0.2 0.2 0.1"/></geometry></collision></link>
  <link name="upper"><inertial><mass value="2"/><inertia ixx="0.02" iyy="0.02" izz="0.03"/></inertial>
    <collision><origin xyz="0.1 0 0"/><geometry><cylinder radius="0.05" length="0.3"/></geometry></collision></link>
  <link name="lower"><inertial><mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="0.01"/></inertial>
    <collision><geometry><mesh filename="cube.stl" scale="1 2 0.5"/></geometry></collision></link>
  <link name="tool"><collision><geometry><sphere radius="0.1"/></geometry></collision></link>
  <joint name="shoulder" type="revolute"><origin xyz="0 0 0.2" rpy="0.1 0 0"/><parent link="base"/><child link="upper"/>
    <axis xyz="0 1 0"/><limit lower="-1" upper="2" effort="50" velocity="3"/><dynamics damping="0.1" friction="0.2"/></joint>
  <joint name="slide" type="prismatic"><parent link="upper"/><child link="lower"/><axis xyz="1 0 0"/>
    <limit lower="-0.5" upper="0.5" effort="20"/><mimic joint="shoulder" multiplier="0.1" offset="0"/></joint>
  <joint name="flange" type="fixed"><origin xyz="0.3 0 0"/><parent link="lower"/><child link="tool"/></joint>
</robot>
"""
MJCF = """<mujoco model="test">
  <compiler angle="radian" autolimits="true"/>
  <option timestep="0.002" gravity="0 0 -9.81"/>
  <default><geom friction="0.8 0.1 0.1" density="900"/></default>
  <asset><mesh name="cube" file="cube.stl" scale="1 1 2"/>
    <hfield name="hill" nrow="2" ncol="3" size="2 1.5 0.4 0.1" elevation="0 0.1 0.2 0.3 0.2 0"/></asset>
  <worldbody>
    <geom name="ground" type="hfield" hfield="hill"/>
    <geom type="plane" size="5 5 0.1" pos="0 0 -1"/>
    <body name="upper" pos="0 0 2" euler="0.1 0.2 0"><joint name="shoulder" axis="0 1 0.3" damping="0.05" range="-1 2" armature="0.01"/>
      <geom type="capsule" size="0.05" fromto="0 0 0 0.4 0 0"/>
      <body name="lower" pos="0.4 0 0"><joint name="elbow" axis="0 1 0" stiffness="3" springref="0.2" frictionloss="0.1"/>
        <joint name="twist" axis="1 0 0"/>
        <inertial pos="0.15 0 0.05" mass="1.2" fullinertia="0.01 0.02 0.02 0.001 0 0.0005"/>
        <geom type="mesh" mesh="cube" contype="2" conaffinity="1"/></body></body>
    <body name="ball" pos="1 0 1"><freejoint/><geom size="0.1" mass="0.5"/></body>
  </worldbody>
  <equality><joint joint1="twist" joint2="elbow" polycoef="0 0.5 0 0 0"/><connect body1="ball" body2="lower" anchor="0 0 0"/></equality>
  <actuator><position name="servo" joint="shoulder" kp="20" forcerange="-5 5"/><motor joint="elbow" gear="3" ctrlrange="-1 1"/></actuator>
  <keyframe><key name="home" qpos="0.1 0.2 0 1 0 1 1 0 0 0"/></keyframe>
</mujoco>
"""


def write_text(path):
    write_mesh(path.parent / "cube.stl")
    path.write_text(MJCF if path.suffix == ".xml" else URDF)


def write_mesh(path):
    cube = trimesh.creation.box((0.2, 0.3, 0.4))
    kind = {"ascii.stl": "stl_ascii"}.get(path.name, path.suffix[1:])
    options = {"encoding": "ascii"} if path.name == "ascii.ply" else {}
    content = cube.export(file_type=kind, **options)
    path.write_bytes(content.encode() if isinstance(content, str) else content)


# --- readers: they return arrays that must be finite
def read_result(path):
    frames = [vtkhdf.read_frame(path, frame) for frame in (0, -1)]
    for frame in frames:
        frame.pop("cell"), frame.pop("rows")  # no arrays; the first is None without periodic space
    joints, reports = vtkhdf.read_joints(path), vtkhdf.read_reports(path)
    with gv.open_result(path) as result:
        materials, seconds = result.materials, result.stage_seconds
        assert isinstance(result.about, dict)
    anchors = [frame.pop("joints") for frame in frames]
    assert all(isinstance(kind, str) for joint in anchors for kind in joint.pop("kind"))
    surfaces = [array for frame in frames for surface in frame.pop("geometries").values() for array in surface.values()]
    assert all(isinstance(name, str) for name in joints.pop("names"))
    numbers = [np.nan_to_num(values, posinf=np.inf, neginf=-np.inf) for values in joints.values()]  # NaN is what a joint does not have
    assert [frame.pop("material_names") for frame in frames] == 2 * [[material.pop("name") for material in materials]]
    numbers += [*seconds.values(), *([*m.values()] for m in materials), *(values for joint in anchors for values in joint.values())]
    return [*surfaces, *numbers, *reports.values(), *(values for frame in frames for values in frame.values())]


def read_fclib(path):
    problem = gv.load_fclib(path)
    return problem.W.data, problem.q, problem.mu


def read_robot(path):
    scene = gv.Scene()
    robot = gv.load_mjcf(scene, path) if path.suffix == ".xml" else gv.load_urdf(scene, path, base="floating")
    bodies = scene.bodies
    flat = np.isfinite(bodies.extent).all(axis=1)  # planes have no end
    poses = [part for link in robot.links for part in robot.link_pose(scene, link)]
    return [bodies.position, bodies.quaternion, bodies.inverse_mass, bodies.extent[flat], *poses]


def read_mesh(path):
    hull, mesh = gv.ConvexHull.from_file(path), gv.Mesh.from_file(path)
    return hull.vertices, hull.mass.volume, hull.mass.moments, mesh.vertices, *([mesh.mass.moments] if mesh.closed else [])


FORMATS = {  # name of the file: (writer, reader)
    "result.vtkhdf": (write_result, read_result),
    "local.hdf5": (write_fclib, read_fclib),
    "global.hdf5": (write_fclib, read_fclib),
    "robot.urdf": (write_text, read_robot),
    "robot.xml": (write_text, read_robot),
    "cube.stl": (write_mesh, read_mesh),
    "ascii.stl": (write_mesh, read_mesh),
    "cube.obj": (write_mesh, read_mesh),
    "cube.ply": (write_mesh, read_mesh),
    "ascii.ply": (write_mesh, read_mesh),
}
IN_CHILD = [name for name in FORMATS if name.endswith("hdf5") or name.endswith("vtkhdf")]
HERE = [name for name in FORMATS if name not in IN_CHILD]


def complaint(path):
    """What is wrong with how a file is read; empty if nothing is."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            numbers = FORMATS[path.name][1](path)
        except ValueError as error:
            text = str(error)
            if path.name not in text or "\n" in text:
                return f"a sentence without the name of the file, or several: {text}"
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        else:
            if not all(np.isfinite(values).all() for values in numbers):
                return "numbers that are not finite"
    if len(caught) > 1 or any(one.category is not UserWarning for one in caught):
        return "; ".join(f"{one.category.__name__}: {one.message}" for one in caught)
    return ""


# --- tests
@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # where MuJoCo writes its log


@pytest.mark.parametrize("name", FORMATS)
def test_good_files_are_read(tmp_path, name):
    write, read = FORMATS[name]
    write(tmp_path / name)
    assert all(np.isfinite(values).all() for values in read(tmp_path / name))


@pytest.mark.parametrize("name", HERE)
def test_damaged_files_are_read_or_refused(tmp_path, name):
    path = tmp_path / name
    FORMATS[name][0](path)
    good, found = path.read_bytes(), {}
    for seed in range(SEEDS):
        damage(path, good, seed)
        found[seed] = complaint(path)
    assert not {seed: words for seed, words in found.items() if words}


@pytest.mark.parametrize("name", IN_CHILD)
def test_damaged_hdf5_files_are_read_or_refused(tmp_path, name):
    path = tmp_path / name
    FORMATS[name][0](path)
    path.with_suffix(".good").write_bytes(path.read_bytes())
    found, first = {}, 0
    while first < SEEDS:
        end, lines = run_child(path, first)
        found.update({seed: words for seed, words in lines})
        first += len(lines)
        if first < SEEDS:
            found[first] = end
            first += 1
    assert not {seed: words for seed, words in found.items() if words}


def test_indices_of_matrices_that_lead_outside_of_arrays_are_refused(tmp_path):
    path = tmp_path / "local.hdf5"
    write_fclib(path)
    for values in ([0, 6, 12, 18, 0, 0, 0], [0, 6, 12, 99, 24, 30, 36], [0, 6, 12, 18, 24, 30, 37], [1, 6, 12, 18, 24, 30, 36]):
        with h5py.File(path, "r+") as file:
            file["fclib_local/W/p"][:] = values
        with pytest.raises(ValueError, match=r"local\.hdf5.*p of matrix W must rise from 0"):
            gv.load_fclib(path)
    with h5py.File(path, "r+") as file:
        file["fclib_local/W/p"][:], file["fclib_local/W/i"][3] = np.arange(0, 37, 6), 6
    with pytest.raises(ValueError, match=r"local\.hdf5"):
        gv.load_fclib(path)


@pytest.mark.parametrize(
    "place, value, words",
    [
        ("VTKHDF/bodies/Points", np.nan, "Points holds what is not finite"),
        ("VTKHDF/bodies/PointData/shape", 77, "a number that there is not"),
        ("VTKHDF/bodies/PointData/geometry", 7, "geometries/7|object '7'"),
        ("VTKHDF/bodies/NumberOfPoints", 10**6, "rows"),
        ("gravel/plane_count", -1, "rows"),
        ("gravel/geometries/0/triangles", 99, "triangles go beyond their vertices"),
        ("gravel/joints/force", np.inf, "force of the joints"),
        ("gravel/kinetic_energy", np.nan, "kinetic_energy"),
    ],
)
def test_results_with_numbers_that_cannot_be_are_refused(tmp_path, place, value, words):
    path = tmp_path / "result.vtkhdf"
    write_result(path)
    with h5py.File(path, "r+") as file:
        file[place][...] = value
    with pytest.raises(ValueError, match=f"result.vtkhdf.*({words})"):
        read_result(path)


@pytest.mark.parametrize(
    "name, good, bad, words",
    [
        ("robot.xml", 'gravity="0 0 -9.81"', 'gravity="0 0 -inf"', "option gravity must be numbers of at most 1e.30, but one is -inf"),
        ("robot.xml", 'kp="20"', 'kp="1e200"', "actuator"),
        ("robot.xml", 'size="5 5 0.1"', 'size="5 1e-300 0.1"', "geom size must be at least 1e-30"),
        ("robot.urdf", 'radius="0.05"', 'radius="1e-300"', "radius of <cylinder> must be at least 1e-30"),
        ("robot.urdf", 'scale="1 2 0.5"', 'scale="1 2e200 0.5"', "scale of <mesh>"),
        ("cube.obj", "v 0.10000000", "v 1e200", "from the origin"),
        ("cube.obj", "v", "v 1e-30 1e-40 0\nv 0 1e-30 0\nv 0 0 1e-30\nv 0 0 0\n#", "1e-20 to 1e.20 m"),
    ],
)
def test_numbers_beyond_what_can_be_computed_with_are_refused(tmp_path, name, good, bad, words):
    path = tmp_path / name
    FORMATS[name][0](path)
    text = path.read_text()
    assert good in text
    path.write_text(text.replace(good, bad))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=f"{name}.*{words}|{words}.*{name}"):
            FORMATS[name][1](path)


@pytest.mark.parametrize("name, inside", [("result.vtkhdf", "gravel/time"), ("local.hdf5", "fclib_local/vectors/q")])
def test_links_to_other_files_are_refused(tmp_path, name, inside):
    path, other = tmp_path / name, tmp_path / "other.h5"
    FORMATS[name][0](path)
    with h5py.File(path, "r+") as file, h5py.File(other, "w") as elsewhere:
        elsewhere["x"] = file[inside][()]
        del file[inside]
        file[inside] = h5py.ExternalLink("other.h5", "x")
    with pytest.raises(ValueError, match=f"{name}.* is kept in another file"):
        FORMATS[name][1](path)


def run_child(path, first):
    """How a child ended, and what it said of each seed from ``first`` on."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, __file__, str(path), str(first)]
    with open(path.with_suffix(".said"), "w+") as said:
        try:
            end = subprocess.run(command, env=environment, stdout=said, stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
            end = f"the process ended with {end.returncode}: {end.stderr[-300:]}"
        except subprocess.TimeoutExpired:
            end = f"it was not read within {PATIENCE} s"
        said.seek(0)
        return end, [json.loads(line) for line in said.read().splitlines()]


def main(path, first):
    """The child: a line for each seed."""
    good = path.with_suffix(".good").read_bytes()
    for seed in range(first, SEEDS):
        damage(path, good, seed)
        print(json.dumps([seed, complaint(path)]), flush=True)


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), int(sys.argv[2]))
