"""A .glb file (glTF 2.0, binary), for web pages, slides and Blender: a node for each body, which share meshes; several frames are an
animation of places and turns.

glTF has y up: the bodies stand under one node, which turns them. Bodies that come or go are scaled to nothing while they are not there.
Colours do not change in an animation.
"""

import json
import os
import struct
from typing import NamedTuple

import numpy as np

from gravel.io.export.instances import COLOURS, GREY, Palette, is_sphere, keys_of, linear, mesh_of, scales_of  # noqa: F401
from gravel.io.outputs import replaced
from gravel.io.surfaces import squares

ENDINGS = (".glb",)
MOST_NODES = 200_000  # a file with more is too much for what shows it
MOST_POSES = 20_000_000  # nodes times frames: about 600 MB
FLOAT, WHOLE = 5126, 5125  # types of numbers
VERTICES, TRIANGLES = 34962, 34963  # what a buffer is for
UPRIGHT = [-(0.5**0.5), 0.0, 0.0, 0.5**0.5]  # x y z w: turns z up into y up
MAGIC, JSON, BINARY = 0x46546C67, 0x4E4F534A, 0x004E4942


def write(chosen, output):
    """NAME.glb."""
    if len(chosen) > 1 and chosen.colour == "speed":
        raise ValueError("colour speed goes with one frame in gltf, whose animations cannot change colours; give a frame, or take usd")
    palette, tracks, scene = Palette(chosen), Tracks(chosen.result.path), Document()
    for _, data in chosen:
        tracks.add(data, palette.numbers(data))
        yield
    root = scene.node(name="gravel, z up", rotation=UPRIGHT, children=[])
    scene.add_bodies(root, tracks, palette.colours)
    scene.add_planes(root, data)
    scene.animate(tracks, chosen.times - chosen.times[0])
    with replaced(output) as path:
        scene.save(path)
    return [output]


class Looks(NamedTuple):
    """What a body looks like in all frames."""

    key: tuple
    scale: np.ndarray  # (3,)
    colour: int


class Tracks:
    """Where bodies are in all frames; what they look like is taken from the first that they are in."""

    def __init__(self, path):
        self.path, self.looks, self.frames, self.poses, self.geometries = path, {}, [], 0, {}

    def add(self, data, colours):
        ids = data["id"].tolist()
        self.poses += len(ids)
        new = [row for row, body in enumerate(ids) if body not in self.looks]
        if len(self.looks) + len(new) > MOST_NODES or self.poses > MOST_POSES:
            words = f"{self.path} has too many bodies and frames for gltf, {len(self.looks) + len(new)} and {len(self.frames) + 1} so far"
            raise ValueError(f"{words}: at most {MOST_NODES} bodies and {MOST_POSES} poses; give a frame or every some frames, or take usd")
        if new:
            (keys, which), scales = keys_of(data), scales_of(data)
            self.looks.update({ids[row]: Looks(keys[which[row]], scales[row], int(colours[row])) for row in new})
        self.geometries.update(data["geometries"])
        self.frames.append((data["id"], data["position"].astype("f4"), data["quaternion"].astype("f4")))

    def gathered(self):
        """Ids (n,), whether they are there (frames, n), places (frames, n, 3), turns x y z w (frames, n, 4); bodies stay where they were
        last seen, or will be first."""
        ids = np.array(sorted(self.looks), np.int64)
        there = np.zeros((len(self.frames), len(ids)), bool)
        place, turn = np.zeros((*there.shape, 3), "f4"), np.zeros((*there.shape, 4), "f4")
        for k, (present, position, quaternion) in enumerate(self.frames):
            rows = np.searchsorted(ids, present)
            there[k, rows], place[k, rows], turn[k, rows] = True, position, quaternion[:, [1, 2, 3, 0]]
        nearest = _nearest(there)
        columns = np.arange(len(ids))
        return ids, there, place[nearest, columns], _continuous(turn[nearest, columns])


def _nearest(there):
    """(frames, n) the frame whose pose a body has: the last that it was in, before that the first."""
    frames = np.arange(len(there))[:, None]
    last = np.maximum.accumulate(np.where(there, frames, -1), axis=0)
    return np.where(last >= 0, last, there.argmax(axis=0))


def _continuous(turns):
    """Quaternions of length one whose signs are such that neighbours in time are close."""
    turns = turns / np.maximum(np.linalg.norm(turns, axis=2, keepdims=True), 1e-30)
    flips = np.einsum("fni,fni->fn", turns[1:], turns[:-1]) < 0
    turns[1:] *= np.where(np.cumsum(flips, axis=0) % 2, -1, 1)[..., None].astype("f4")
    return turns.astype("f4")


class Document:
    """A glTF document that grows."""

    def __init__(self):
        self.nodes, self.meshes, self.materials, self.accessors, self.views, self.chunks, self.length = [], [], [], [], [], [], 0
        self.animations, self.shapes, self.node_of = [], {}, {}

    # --- numbers
    def view(self, values, target=None):
        """The bytes of an array; returns the number of its view."""
        content = np.ascontiguousarray(values).tobytes()
        self.views.append({"buffer": 0, "byteOffset": self.length, "byteLength": len(content), **({"target": target} if target else {})})
        self.chunks.append(content + b"\0" * (-len(content) % 4))
        self.length += len(self.chunks[-1])
        return len(self.views) - 1

    def accessor(self, view, count, kind, number=FLOAT, offset=0, **more):
        place = {"bufferView": view, "byteOffset": offset, "componentType": number}
        self.accessors.append({**place, "count": int(count), "type": kind, **more})
        return len(self.accessors) - 1

    def array(self, values, kind, number=FLOAT, target=None):
        """An array with its bounds; returns the number of its accessor."""
        flat = values.reshape(len(values), -1)
        bounds = {"min": flat.min(axis=0).tolist(), "max": flat.max(axis=0).tolist()}
        return self.accessor(self.view(values, target), len(values), kind, number, **bounds)

    # --- what is shown
    def node(self, **values):
        self.nodes.append(values)
        return len(self.nodes) - 1

    def material(self, colour):
        values = {"baseColorFactor": [*linear(colour), 1.0], "metallicFactor": 0.0, "roughnessFactor": 0.7}
        self.materials.append({"name": colour, "pbrMetallicRoughness": values, "doubleSided": True})
        return len(self.materials) - 1

    def mesh(self, vertices, faces, material, normals=None, mode=4):
        attributes = {"POSITION": self.array(vertices, "VEC3", target=VERTICES)}
        if normals is not None:
            attributes["NORMAL"] = self.array(normals, "VEC3", target=VERTICES)
        indices = self.array(np.ravel(faces).astype("u4"), "SCALAR", WHOLE, TRIANGLES)
        return self._add_mesh({"attributes": attributes, "indices": indices, "material": material, "mode": mode})

    def _add_mesh(self, primitive):
        self.meshes.append({"primitives": [primitive]})
        return len(self.meshes) - 1

    def shape(self, key, colour, geometries, materials):
        """The mesh of a key in a colour; the arrays of a key are shared by all its colours."""
        if (key, colour) not in self.shapes:
            known = next((mesh for (other, _), mesh in self.shapes.items() if other == key), None)
            if known is not None:
                primitive = {**self.meshes[known]["primitives"][0], "material": materials[colour]}
                self.shapes[key, colour] = self._add_mesh(primitive)
            else:
                vertices, faces = mesh_of(key, geometries)
                normals = None if key[0] == "geometry" else normals_of(vertices, faces)
                self.shapes[key, colour] = self.mesh(vertices, faces, materials[colour], normals)
        return self.shapes[key, colour]

    def add_bodies(self, root, tracks, colours):
        used = sorted({looks.colour for looks in tracks.looks.values()})
        materials = {number: self.material(colours[number]) for number in used}
        self.poses = ids, _, places, turns = tracks.gathered()
        for body, place, turn in zip(ids.tolist(), places[0].tolist(), turns[0].tolist()):
            looks = tracks.looks[body]
            mesh = self.shape(looks.key, looks.colour, tracks.geometries, materials)
            values = {"name": f"body {body}", "mesh": mesh, "translation": place, "scale": looks.scale.tolist()}
            self.node_of[body] = self.node(**values, **({} if is_sphere(looks.key) else {"rotation": turn}))
        self.nodes[root]["children"] += list(self.node_of.values())

    def add_planes(self, root, data):
        """Floors as squares, walls as outlines, where they are in the last frame."""
        points, _, cells = squares(data)
        if not len(points):
            return
        grey = self.material(GREY)
        for name, faces, mode in (
            ("floors", cells["Polygons"][:, [0, 1, 2, 0, 2, 3]], 4),
            ("walls", cells["Lines"][:, [0, 1, 1, 2, 2, 3, 3, 0]], 1),
        ):
            if len(faces):
                self.nodes[root]["children"].append(self.node(name=name, mesh=self.mesh(points, faces, grey, mode=mode)))

    # --- motion
    def animate(self, tracks, times):
        """Channels for what changes, where there are several frames."""
        if len(times) < 2:
            return
        ids, there, places, turns = self.poses
        clock = self.array(times.astype("f4"), "SCALAR")
        turning = np.array([not is_sphere(tracks.looks[body].key) for body in ids], bool)  # there may be none
        tracked = (
            ("translation", places, "VEC3", (places != places[0]).any(axis=(0, 2)), "LINEAR"),
            ("rotation", turns, "VEC4", (turns != turns[0]).any(axis=(0, 2)) & turning, "LINEAR"),
            ("scale", self._sizes(tracks, ids, there), "VEC3", ~there.all(axis=0), "STEP"),
        )
        channels, samplers = [], []
        for path, values, kind, moving, interpolation in tracked:
            rows = np.flatnonzero(moving)
            if len(rows):
                view, step = self.view(values[:, rows].swapaxes(0, 1)), values[:, 0].nbytes
            for k, row in enumerate(rows):
                output = self.accessor(view, len(times), kind, offset=k * step)
                samplers.append({"input": clock, "output": output, "interpolation": interpolation})
                channels.append({"sampler": len(samplers) - 1, "target": {"node": self.node_of[int(ids[row])], "path": path}})
        if channels:
            self.animations.append({"name": "run", "channels": channels, "samplers": samplers})

    @staticmethod
    def _sizes(tracks, ids, there):
        """(frames, n, 3): the scale of each body, next to nothing where it is not there."""
        scales = np.array([tracks.looks[body].scale for body in ids.tolist()], "f4").reshape(-1, 3)
        return np.where(there[..., None], scales, np.float32(1e-6) * scales).astype("f4")

    def save(self, path):
        """Write the file: a head, the description as JSON, the numbers."""
        from gravel import __version__

        content = {
            "asset": {"version": "2.0", "generator": f"gravel {__version__}"},
            "scene": 0,
            "scenes": [{"nodes": [0]}],
            **{name: values for name, values in (("nodes", self.nodes), ("meshes", self.meshes), ("materials", self.materials)) if values},
            **({"animations": self.animations} if self.animations else {}),
            **({"accessors": self.accessors, "bufferViews": self.views, "buffers": [{"byteLength": self.length}]} if self.length else {}),
        }
        text = json.dumps(content, separators=(",", ":")).encode()
        text += b" " * (-len(text) % 4)
        chunks = [struct.pack("<II", len(text), JSON), text]
        if self.length:
            chunks += [struct.pack("<II", self.length, BINARY), *self.chunks]
        with open(path, "wb") as file:
            file.write(struct.pack("<III", MAGIC, 2, 12 + sum(map(len, chunks))))
            for chunk in chunks:
                file.write(chunk)
            file.flush()
            os.fsync(file.fileno())


def normals_of(vertices, faces):
    """Unit normals at vertices: sums of the area vectors of the triangles there."""
    a, b, c = (vertices[faces[:, k]].astype(float) for k in range(3))
    normals = np.zeros((len(vertices), 3))
    for k in range(3):
        np.add.at(normals, faces[:, k], np.cross(b - a, c - a))
    return (normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-30)).astype("f4")
