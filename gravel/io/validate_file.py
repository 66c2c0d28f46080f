"""Whether HDF5 files can be what they say: arrays that are kept in the file itself (``stored``), and for checkpoints names, types,
lengths, and every number that is an index.

The kernels trust their indices; a file that was changed on purpose must not lead them outside their arrays. Everything here raises a
``ValueError`` with a few words, to which the reader adds the name of the file.
"""

import math

import h5py
import numpy as np

from gravel.contacts import ContactTable
from gravel.joints.kinds import LAST_GAUGE
from gravel.joints.rows import ANCHOR_FIELDS, ROW_FIELDS, SPRING_FUNCTION
from gravel.running.sleep import LOOKS
from gravel.shapes import COMPOUND, CONVEX, HULL, KINDS, MESH
from gravel.shapes.geometry import LEAF, NONE
from gravel.shapes.kinds import kind_of
from gravel.state import FIELDS, GROUP, IMMOVABLE, MATERIAL, MOVABLE, SHAPE, SLEEPING, STATUS

# what h5py, and code that takes a file's word for it, may raise where the file is damaged
DAMAGE = (KeyError, ValueError, TypeError, IndexError, AttributeError, OverflowError, OSError, RuntimeError, MemoryError, RecursionError)
PACKED = 100  # bytes of an array for each byte of its file, at most; a size that is damaged would fill the memory
MEMORY = ("a", "b", "feature", "impulse", "torque")
SLEPT = ("slept_a", "slept_b", "slept_feature", "slept_impulse", "slept_torque")


def need(condition, words):
    if not condition:
        raise ValueError(words)


def stored(group, name, kinds="fiub"):
    """A dataset of numbers, or other ``kinds``, in a group, if it is kept in the file itself (links lead to any file of the machine) and
    has room there."""
    data = group[name]
    need(isinstance(data, h5py.Dataset) and data.dtype.kind in kinds, f"{name} holds no {'numbers' if kinds == 'fiub' else 'names'}")
    same = h5py.h5f.get_name(data.id) == h5py.h5f.get_name(group.id)  # by ids: readers ask this thousands of times
    need(same and not data.external and not data.is_virtual, f"{name} is kept in another file")
    size = math.prod(data.shape) * data.dtype.itemsize
    enough = size <= PACKED * h5py.h5i.get_file_id(group.id).get_filesize()
    need(enough, f"{name} is said to have the shape {data.shape}, for which its file is too small")
    return data


def rows_of(group, name, rows, shape, dtype):
    """Some rows of an array, if they are there and finite; ``shape``: of one row."""
    data = stored(group, name)
    if data.ndim != 1 + len(shape) or data.shape[1:] != shape or data.dtype.kind != np.dtype(dtype).kind:
        raise ValueError(f"{name} holds {data.dtype} of the shape {data.shape}")
    if not 0 <= rows.start <= rows.stop <= len(data):
        raise ValueError(f"{name} has {len(data)} rows, of which {rows.start} to {rows.stop} are asked for")
    values = data[rows]
    if not np.isfinite(values).all():
        raise ValueError(f"{name} holds what is not finite")
    return values


def all_rows(group, name, shape, dtype):
    """All rows of an array, likewise."""
    return rows_of(group, name, slice(0, len(stored(group, name))), shape, dtype)


def arrays_of(group, prefix=""):
    """Name -> array of all data below a group. Only what stands in the file itself: links may lead to any file of the machine."""
    arrays = {}
    for name in group:
        need(isinstance(group.get(name, getlink=True), h5py.HardLink), f"{prefix}{name} is a link to somewhere else")
        item = group[name]
        if isinstance(item, h5py.Group):
            arrays.update(arrays_of(item, f"{prefix}{name}/"))
        else:
            data = stored(group, name)
            need(data.dtype.isnative, f"{prefix}{name} holds {data.dtype}")
            arrays[f"{prefix}{name}"] = data[()]
    return arrays


def check_bodies(arrays, count, materials, geometries):
    """The fields of the bodies, of which ids below ``count`` were given."""
    n = len(arrays["bodies/position"])
    for field in FIELDS:
        array = arrays[f"bodies/{field.name}"]
        need(array.shape == (n, *field.shape), f"bodies/{field.name} has the shape {array.shape}")
        need(array.dtype.kind == ("f" if field.dtype == "real" else np.dtype(field.dtype).kind), f"bodies/{field.name} holds {array.dtype}")
        finite = field.name != "extent" and array.dtype.kind == "f"  # a plane has no end
        need(not np.isnan(array).any() and (not finite or np.isfinite(array).all()), f"bodies/{field.name} holds what is not finite")
    tag, geometry, identity = (arrays[f"bodies/{name}"] for name in ("tag", "geometry", "id"))
    need(len(np.unique(identity)) == n, "bodies/id holds a number twice")
    within("bodies/id", identity, 0, count)
    within("shapes of bodies", tag[:, SHAPE], 0, len(KINDS))
    within("materials of bodies", tag[:, MATERIAL], 0, materials)
    within("groups of bodies", tag[:, GROUP], 0, len(arrays["ignored"]))
    need(np.isin(tag[:, STATUS], (IMMOVABLE, MOVABLE, SLEEPING)).all(), "bodies/tag holds an unknown status")
    within("bodies/island", arrays["bodies/island"], 0, count + 1)
    need(((arrays["bodies/island"] > 0) == (tag[:, STATUS] == SLEEPING)).all(), "bodies/island does not fit who sleeps")
    within("bodies/geometry", geometry, NONE, len(geometries))
    shaped = np.isin(tag[:, SHAPE], (HULL, COMPOUND, MESH))
    need((geometry[shaped] != NONE).all(), "a body has no geometry")
    kinds = np.array([kind_of(g) for g in geometries] or [0])
    need((kinds[geometry[shaped]] == tag[shaped, SHAPE]).all(), "a body has the geometry of another shape")
    need(np.allclose(np.einsum("ni,ni->n", *[arrays["bodies/quaternion"]] * 2), 1.0, atol=1e-6), "bodies/quaternion is not of length one")
    need((arrays["bodies/inverse_mass"] >= 0).all(), "bodies/inverse_mass is negative")
    need(arrays["gravity"].shape == (3,) and np.isfinite(arrays["gravity"]).all(), "gravity is not three finite numbers")
    need(arrays["world"].shape == (2, 3) and not np.isnan(arrays["world"]).any(), "world is not two corners")
    need(arrays["ignored"].ndim == 2 and len(set(arrays["ignored"].shape)) == 1, "ignored is not square")


def check_memory(arrays, bodies):
    """The contacts of the last step, by body."""
    number = arrays["memory/number"]
    need(number.shape == (bodies,), "memory/number does not fit the bodies")
    need((number >= 0).all() and int(number.sum()) == len(arrays["memory/a"]), "memory/number does not fit the contacts")
    check_remembered(arrays)


def check_remembered(arrays):
    """The contacts of the last step, whichever bodies have found them."""
    memory = {name: arrays[f"memory/{name}"] for name in MEMORY}
    total = len(memory["a"])
    for name in ("b", "feature", "impulse"):
        need(len(memory[name]) == total, f"memory/{name} has another length than memory/a")
    need(len(memory["torque"]) in (0, total), "memory/torque has another length than memory/a")
    for name in ("impulse", "torque"):
        need(memory[name].shape[1:] == (3,) and np.isfinite(memory[name]).all(), f"memory/{name} holds what is not finite")
    slept = {name: arrays[f"memory/{name}"] for name in SLEPT}
    for name, array in slept.items():
        need(len(array) == len(slept["slept_a"]), f"memory/{name} has another length than memory/slept_a")
        vectors = name in ("slept_impulse", "slept_torque")
        need(array.shape[1:] == ((3,) if vectors else ()) and np.isfinite(array).all(), f"memory/{name} holds what is not finite")
        need(array.dtype.kind == ("f" if vectors else "i"), f"memory/{name} holds {array.dtype}")


def check_watch(arrays, count):
    """Who has been at rest since when."""
    clock, ids = arrays["sleep/clock"], arrays["sleep/ids"]
    need(clock.shape == (2,) and clock[0] < math.inf and clock[1] in range(len(LOOKS)), "sleep/clock is not a moment and a number of looks")
    need(ids.dtype.kind == "i" and ids.ndim == 1, f"sleep/ids holds {ids.dtype}")
    within("sleep/ids", ids, 0, count)
    for name, columns in (("position", 3), ("quaternion", 4)):
        array = arrays[f"sleep/{name}"]
        need(array.shape == (len(ids), columns) and np.isfinite(array).all(), f"sleep/{name} does not fit sleep/ids")


def check_contacts(arrays, count):
    """The table of the last step's contacts, between bodies with ids below ``count``."""
    table = ContactTable(**{name.removeprefix("contacts/"): array for name, array in arrays.items() if name.startswith("contacts/")})
    for name, kind, columns in (
        *((name, "i", ()) for name in ("body_a", "body_b")),
        *((name, "f", (3,)) for name in ("point", "normal", "impulse")),
        ("gap", "f", ()),
        ("sliding", "b", ()),
    ):
        array = getattr(table, name)
        need(array.dtype.kind == kind and array.shape == (len(table.gap), *columns), f"contacts/{name} has the shape {array.shape}")
        need(kind != "f" or np.isfinite(array).all(), f"contacts/{name} holds what is not finite")
    for name in ("body_a", "body_b"):
        within(f"contacts/{name}", getattr(table, name), 0, count)


def check_geometry(g, k):
    """The indices within geometry number k, whose parts are numbers still."""
    vertices, triangles, faces = len(g.vertices), len(g.triangles), len(g.face_normals)
    where = f"geometry {k}"
    for name in ("vertices", "face_normals", "triangles", "adjacent", "normals", "child_size", "child_position"):
        need(getattr(g, name).shape[1:] == (3,), f"{where}: {name} are not triples")
    for name in ("half", "vertices", "face_normals", "normals", "child_size", "child_radius", "child_position", "child_quaternion"):
        need(np.isfinite(getattr(g, name)).all(), f"{where}: {name} hold what is not finite")
    need(g.half.shape == (3,) and g.child_quaternion.shape[1:] == (4,) and g.boxes.shape[1:] == (6,), f"{where}: shapes of arrays")
    within(f"{where}: neighbours", g.neighbours, 0, vertices)
    within(f"{where}: corners", g.face_corners, 0, vertices)
    within(f"{where}: triangles", g.triangles, 0, vertices)
    within(f"{where}: adjacent triangles", g.adjacent, NONE, triangles)
    check_starts(f"{where}: neighbours", g.neighbour_start, vertices, len(g.neighbours))
    check_starts(f"{where}: faces", g.face_start, faces, len(g.face_corners))
    leaves = 1
    while leaves * LEAF < triangles:
        leaves *= 2
    need(len(g.boxes) == (2 * leaves - 1 if triangles else 0), f"{where}: its tree does not fit its triangles")
    need(len(g.adjacent) == len(g.normals) == triangles, f"{where}: its triangles lack neighbours or normals")
    children = {len(getattr(g, f"child_{name}")) for name in ("kind", "size", "radius", "position", "quaternion", "geometry")}
    need(len(children) == 1, f"{where}: its children lack something")
    need(np.isin(g.child_kind, list(CONVEX)).all(), f"{where}: kinds of children hold what is not convex")
    within(f"{where}: geometries of children", g.child_geometry, NONE, len(g.parts))
    need((g.child_geometry[g.child_kind == HULL] != NONE).all(), f"{where}: a child has no geometry")
    within(f"{where}: parts", np.asarray(g.parts, np.int64), 0, k)  # parts come before what they are parts of


def check_starts(words, start, rows, end):
    need(len(start) in (0, rows) and (len(start) > 0 or end == 0), f"{words} do not fit")
    within(words, start, 0, end + 1)
    need((np.diff(start) >= 0).all(), f"{words} are not in order")


def check_joints(arrays, names, identity, ids):
    """Joints between the bodies with these ids, of which ``ids`` were ever given; their rows and coordinates."""
    joints = {name.removeprefix("joints/"): array for name, array in arrays.items() if name.startswith("joints/")}
    lengths = {len(joints[f"joint_{name}"]) for name in ANCHOR_FIELDS} | {len(names)}
    rows = {len(joints[f"row_{name}"]) for name in ROW_FIELDS}
    need(len(lengths) == 1 and len(rows) == 1, "its joints lack something")
    count, rows = lengths.pop(), rows.pop()
    for name in ("joint_body_a", "joint_body_b"):
        gone = joints["joint_broken"] != 0
        need((gone | np.isin(joints[name], identity) | (joints[name] == -1)).all(), f"{name} names a body that is not there")
    for name in ("row_joint", "row_owner"):
        within(name, joints[name], 0, count)
    within("row_joint_2", joints["row_joint_2"], -1, count)
    within("row_gauge", joints["row_gauge"], 0, LAST_GAUGE + 1)
    within("row_gauge_2", joints["row_gauge_2"], 0, LAST_GAUGE + 1)
    within("row_role", joints["row_role"], 0, SPRING_FUNCTION + 1)
    within("functions", joints["functions"], 0, rows)
    need(joints["coordinates"].shape[1:] == (4,) and joints["apart"].shape[1:] == (3,), "coordinates or pairs apart have another shape")
    within("coordinates", joints["coordinates"][:, 0], 0, max(count, 1))
    within("coordinates", joints["coordinates"][:, 1], 0, LAST_GAUGE + 1)
    within("pairs apart", joints["apart"][:, :2], 0, ids)
    within("pairs apart", joints["apart"][:, 2], -1, count)


def within(words, numbers, low, high):
    """Whether whole numbers are from ``low`` to below ``high``."""
    need(numbers.size == 0 or (numbers.min() >= low and numbers.max() < high), f"{words} go beyond what there is")
