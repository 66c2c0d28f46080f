"""What the viewer's page is sent: arrays as they lie in memory, behind a short description in JSON.

A message is a length (4 bytes, little endian), so many bytes of JSON, and the arrays, each at a multiple of eight bytes. The JSON holds
``arrays``: name -> [type, shape, offset from the end of the JSON], and whatever else the page needs to know. The page hands the arrays to
the graphics card without looking into them; poses are applied there.

Bodies come in two parts. Their *layout* does not change while the same bodies are there: ids, kinds, sizes, materials. Their *frame* is
where they are. A page that has a layout already names its key and is not sent it again.
"""

import hashlib
import json

import numpy as np

from gravel.io.triangles import lengths_of, template
from gravel.rotations import rotate
from gravel.shapes import COMPOUND, HULL, SPHERE
from gravel.view.look import RESTS
from gravel.view.subject import anchors, contact_ends, joint_points, rows_of_ids
from gravel.view.viewer.thinning import LARGE

LAYOUT = ("id", "shape", "radius", "extent", "material", "movable", "geometry")  # what makes it
LINES = 40_000  # contacts that are sent at most, the strongest
SIDES = 24  # of round templates
COARSE = 8  # sides of round walls, where it is asked what they hide
SAMPLE = 5000  # bodies that tell where most are
STRAYED = 0.005  # share of bodies on each side that may lie far from the others
FEW = 200  # of so many bodies none counts as strayed; of more walls not all are looked at
SMOOTH = 35.0  # degrees: edges of meshes that are sharper stay sharp
NAMED = 14  # materials, processes or bodies in the list of colours
MOST = 0.99  # of the bodies are within the limits of a colour scale
SPRINGS = ("Spring", "Bushing", "Distance")  # drawn as zigzags
RAYS, HIDES = 80, 0.15  # what stands before more than this share of so many bodies is drawn translucent
FROM = np.array([0.75, -1.25, 0.65])  # direction from the scene to the camera at the start


def packed(arrays, **facts):
    """A message of named arrays and facts."""
    described, pieces, offset = {}, [], 0
    for name, values in arrays.items():
        values = np.ascontiguousarray(values)
        described[name] = [values.dtype.str[1:], list(values.shape), offset]
        padding = -values.nbytes % 8
        pieces += [values.tobytes(), bytes(padding)]
        offset += values.nbytes + padding
    head = json.dumps({"arrays": described, **facts}, allow_nan=False).encode()
    head += b" " * (-(len(head) + 4) % 8)
    return b"".join([len(head).to_bytes(4, "little"), head, *pieces])


def key_of(data):
    """The key of a frame's layout."""
    digest = hashlib.blake2b(digest_size=12)
    for name in LAYOUT:
        digest.update(np.ascontiguousarray(data[name]).tobytes())
    return digest.hexdigest()


def frame_message(data, known, number, colouring=None, **facts):
    """Where the bodies of a frame are; with their layout, unless its key is ``known``, and with what they are coloured by, if given."""
    key = data.get("layout_key") or key_of(data)
    solid = data["shape"] != SPHERE
    arrays = {"position": data["position"].astype("f4"), "turn": data["quaternion"][solid].astype("f4")}
    arrays |= {"plane_position": data["plane_position"].astype("f4"), "plane_normal": data["plane_normal"].astype("f4")}
    arrays |= joint_lines(data)
    if key != known:
        arrays |= layout_arrays(data, solid)
    if colouring is not None:
        values, facts["colouring"] = coloured(colouring, data)
        arrays["value"] = values
    facts |= {"bounds": bounds_of(data), "cell": cell_facts(data), **share_facts(data)}
    return packed(arrays, number=number, time=data["time"], layout=key, **facts)


def layout_message(data):
    """The layout of a frame alone."""
    return packed(layout_arrays(data, data["shape"] != SPHERE), layout=key_of(data), **share_facts(data))


def share_facts(data):
    """How many bodies can move; where not all are shown (``thinning``), how much larger those that stand for others are drawn, so that they
    fill as much of space."""
    moving = int(np.count_nonzero(data["movable"]))
    if "share" not in data:
        return {"moving": moving}
    return {"moving": data["moving"], "swell": data["share"] ** (-1 / 3)}


def layout_arrays(data, solid):
    """Rows of bodies that are no spheres stand in ``solid``, and their sizes and geometries in that order."""
    return {
        "id": data["id"].astype("u4"),
        "kind": data["shape"].astype("u1"),
        "radius": data["radius"].astype("f4"),
        "movable": data["movable"].astype("u1"),
        "solid": np.flatnonzero(solid).astype("u4"),
        "size": lengths_of(data["extent"][solid].astype("f4"), data["radius"][solid]).astype("f4"),
        "geometry": data["geometry"][solid].astype("i4"),
        "translucent": translucent(data).astype("u1"),
        **({"sampled": data["sampled"].astype("u1")} if "sampled" in data else {}),
    }


def turns_message(data):
    """The quaternions of all bodies of a frame, balls included, for their axes."""
    return packed({"turn": data["quaternion"].astype("f4")})


def values_message(colouring, data):
    """What bodies are coloured by."""
    values, facts = coloured(colouring, data)
    return packed({"value": values}, **facts)


def coloured(colouring, data):
    """(values, facts) of what bodies are coloured by, with limits between which all but a few of those that can move lie. The scale of
    speeds is never so short that it would show the trembling of bodies at rest."""
    values, moving = colouring.values.astype("f4"), data["movable"] > 0
    chosen = values[moving] if moving.any() else values
    chosen = chosen[np.isfinite(chosen)]
    limits = [float(chosen.min()), float(np.quantile(chosen, MOST))] if len(chosen) else [0.0, 1.0]
    if colouring.words.startswith("speed"):
        limits = [0.0, max(limits[1], speed_at_rest(data, moving))]
    numbers = np.unique(values).astype(int).tolist()[:NAMED] if colouring.numbered else []
    names = {number: colouring.name_of(number) for number in numbers}
    return values, {"words": colouring.words, "numbered": colouring.numbered, "limits": limits, "names": names}


def speed_at_rest(data, moving):
    """m/s: slower bodies count as at rest, as in pictures."""
    return float(RESTS * np.sqrt(2 * 9.81 * np.median(data["radius"][moving]))) if moving.any() else 0.0


# --- surfaces
def template_message(kind):
    """The template of a simple shape: a corner lies at weights @ size, four numbers. Normals, where they are the same for all sizes."""
    weights, triangles, normals = template(int(kind), SIDES)
    weights = np.pad(weights, ((0, 0), (0, 0), (0, 4 - weights.shape[2])))
    slopes = {} if normals is None else {"normal": normals.astype("f4")}
    return packed({"weights": weights.astype("f4"), "triangles": triangles.astype("u4"), **slopes})


def surface_message(surface, kind):
    """A geometry as triangles that share no corners, each corner with its normal."""
    vertices, triangles = surface["vertices"].astype(float), surface["triangles"]
    corners = vertices[triangles]
    normals = flat_normals(corners) if kind == HULL else smooth_normals(vertices, triangles, kind == COMPOUND)
    return packed({"corner": corners.reshape(-1, 3).astype("f4"), "normal": normals.reshape(-1, 3).astype("f4")})


def flat_normals(corners):
    """(t, 3, 3): at each corner of a triangle its own normal."""
    area = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    return np.repeat(_unit(area)[:, None], 3, axis=1)


def smooth_normals(vertices, triangles, split):
    """(t, 3, 3): the mean over the triangles at a vertex, where that is within SMOOTH of the triangle's own normal; else the latter.
    ``split``: sharp edges have vertices of their own for each side already."""
    area = np.cross(vertices[triangles[:, 1]] - vertices[triangles[:, 0]], vertices[triangles[:, 2]] - vertices[triangles[:, 0]])
    place = np.arange(len(vertices)) if split else np.unique(vertices, axis=0, return_inverse=True)[1].reshape(-1)
    sums = np.zeros((len(vertices), 3))
    for corner in range(3):
        np.add.at(sums, place[triangles[:, corner]], area)
    own, mean = np.repeat(_unit(area)[:, None], 3, axis=1), _unit(sums)[place[triangles]]
    near = (own * mean).sum(axis=2, keepdims=True) > np.cos(np.radians(SMOOTH))
    return np.where(near, mean, own)


def _unit(vectors):
    return vectors / np.maximum(np.linalg.norm(vectors, axis=-1, keepdims=True), 1e-30)


# --- contacts, joints, cells
def contacts_message(data, table, dt, most=LINES):
    """Contacts as lines from centre to centre (to the contact's point where a body is fixed or large), the strongest first, with the
    size of their force in N."""
    if "sampled" in data:
        table = table[(rows_of_ids(data, table.body_a) >= 0) & (rows_of_ids(data, table.body_b) >= 0)]
    force = np.linalg.norm(table.impulse, axis=1) / dt
    order = np.argsort(-force, kind="stable")[: min(most, np.count_nonzero(force))]
    chosen, grains = table[order], (data["movable"] > 0) & ~large(data)
    arrays = {"force": force[order].astype("f4"), "sliding": chosen.sliding.astype("u1")}
    arrays |= {name: contact_ends(data, ids, chosen.point, grains) for name, ids in (("start", chosen.body_a), ("end", chosen.body_b))}
    return packed(arrays, total=len(table), mean=float(force[force > 0].mean()) if force.any() else 0.0)


def joint_lines(data):
    """Where joints sit in the world: (j, 3) on body a, (j, 3) on body b, their axes, and what they are: 0 a joint, 1 a spring."""
    joints = data.get("joints")
    if not joints or not len(joints["body_a"]):
        return {}
    ends = joint_points(data)
    axis = anchors(data, joints["body_a"], joints["point_a"] + joints["axis"]) - ends[0]
    shown = ~np.asarray(joints["broken"], bool) & ((joints["body_a"] >= 0) | (joints["body_b"] >= 0))
    shown &= np.isfinite(ends[0]).all(axis=1) & np.isfinite(ends[1]).all(axis=1)
    spring = np.array([kind in SPRINGS for kind in joints["kind"]])
    named = {"joint_a": ends[0], "joint_b": ends[1], "joint_axis": axis}
    return {**{name: values[shown].astype("f4") for name, values in named.items()}, "joint_kind": spring[shown].astype("u1")}


def cell_facts(data):
    """Low and high corner of a periodic cell (None along axes that are open), how far its upper side is shifted (m), along which axis, and
    across which; None without a cell."""
    cell = data["cell"]
    if cell is None:
        return None
    low, high = ([float(x) if periodic else None for x, periodic in zip(corner, cell.periodic)] for corner in (cell.low, cell.high))
    direction, gradient = cell.to_values()["axes"]
    return {"low": low, "high": high, "tilt": float(cell.tilt), "direction": int(direction), "gradient": int(gradient)}


# --- what to look at
def large(data):
    """Which bodies are far larger than most that move."""
    moving = data["movable"] > 0
    typical = np.median(data["radius"][moving]) if moving.any() else np.inf
    return data["radius"] > LARGE * typical


def bounds_of(data):
    """[low, high] corners of what a camera should see: the bodies that move, but for those that strayed far from nearly all others, and
    walls that reach no further than a diagonal beyond them; of a scene in which nothing moves, all."""
    moving = data["movable"] > 0
    bodies = moving if moving.any() else np.ones(len(moving), bool)
    if not bodies.any():
        return [[-1, -1, -1], [1, 1, 1]]
    low, high = _near_all(data["position"][bodies], data["radius"][bodies, None].astype(float))
    reach, near = np.linalg.norm(high - low), [(low, high)]
    for wall in np.flatnonzero(~bodies | large(data))[:FEW]:
        corners = data["position"][wall] + rotate(data["quaternion"][wall].astype(float), _corners(data, wall))
        if (corners >= low - reach).all() and (corners <= high + reach).all():
            near.append((corners.min(axis=0), corners.max(axis=0)))
    return [np.min([lowest for lowest, _ in near], axis=0).tolist(), np.max([highest for _, highest in near], axis=0).tolist()]


def _near_all(places, radius):
    """Corners of the box around all bodies, but for those that are farther than a diagonal from the box that holds nearly all."""
    if len(places) < FEW:
        return (places - radius).min(axis=0), (places + radius).max(axis=0)
    some = places[:: max(len(places) // SAMPLE, 1)]
    low, high = np.quantile(some, STRAYED, axis=0), np.quantile(some, 1 - STRAYED, axis=0)
    reach = np.linalg.norm(high - low)
    near = ((places >= low - reach) & (places <= high + reach)).all(axis=1)
    return (places - radius)[near].min(axis=0), (places + radius)[near].max(axis=0)


def _corners(data, body):
    """Vertices of a body's surface, or of a coarse one, in its frame."""
    size, number = data["extent"][body].astype(float), int(data["geometry"][body])
    if number >= 0:
        return size[0] * np.asarray(data["geometries"][number]["vertices"], float)
    weights = template(int(data["shape"][body]), COARSE).weights
    return weights @ lengths_of(size[None], data["radius"][body : body + 1], weights.shape[2])[0]


def translucent(data):
    """Which walls, and large parts of machines, stand between the grains and the camera at the start."""
    grains = np.flatnonzero((data["movable"] > 0) & ~large(data))
    result = np.zeros(len(data["id"]), bool)
    walls = np.flatnonzero((data["movable"] == 0) | large(data))
    if not len(grains) or len(walls) > 10 * FEW:
        return result
    starts = data["position"][grains[:: -(-len(grains) // RAYS)]].astype(float)
    for wall in walls:
        result[wall] = _share_hidden(data, wall, starts) > HIDES
    return result


def _share_hidden(data, wall, starts):
    """The share of rays from some places to the camera that a body stops, in the frame of the body."""
    turn, here = data["quaternion"][wall].astype(float), data["position"][wall].astype(float)
    back = turn * (1, -1, -1, -1)
    origins, along = rotate(back, starts - here), rotate(back, FROM / np.linalg.norm(FROM))
    number = int(data["geometry"][wall])
    triangles = data["geometries"][number]["triangles"] if number >= 0 else template(int(data["shape"][wall]), COARSE).triangles
    return float(np.mean(_hit(origins, along, _corners(data, wall)[triangles])))


def _hit(origins, along, corners):
    """Which rays of one direction meet any of the triangles (t, 3, 3): in the plane across the rays, triangles that hold the origin."""
    across = np.linalg.svd(along[None])[2][1:]  # two directions at right angles to the rays
    flat, ahead = corners @ across.T, corners @ along
    result = np.zeros(len(origins), bool)
    for k, origin in enumerate(origins):
        p = flat - across @ origin
        areas = [p[:, i, 0] * p[:, j, 1] - p[:, i, 1] * p[:, j, 0] for i, j in ((1, 2), (2, 0), (0, 1))]
        inside = np.flatnonzero((np.sign(areas) >= 0).all(axis=0) | (np.sign(areas) <= 0).all(axis=0))
        weights = np.array(areas)[:, inside]
        total = weights.sum(axis=0)
        good = np.abs(total) > 0
        depth = (weights[:, good] * ahead[inside[good]].T).sum(axis=0) / total[good]
        result[k] = (depth > along @ origin).any()
    return result
