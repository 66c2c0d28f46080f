"""A series of .vtp files and the .pvd file that gives them times: for ParaView, VisIt, PyVista and what else reads VTK's XML files.

Of each frame: ``bodies``, a point for each with its radius; ``surfaces`` of all that are no spheres; ``planes``; and ``contacts`` if they
are asked for, as lines from body to body with the force that they carry.
"""

import os
import pathlib
import shutil
from xml.sax.saxutils import quoteattr

import numpy as np

from gravel.io.export.chosen import need
from gravel.io.layout import POINT_DATA
from gravel.io.outputs import replaced
from gravel.io.surfaces import shown_as_points, squares, surfaces_of

ENDINGS = (".pvd",)
PARTS = ("bodies", "surfaces", "planes", "contacts")
BEYOND = 1.5  # bounding radii: a body whose middle is farther from the contact is on the other side of a periodic cell


def write(chosen, output):
    """NAME.pvd, and the folder NAME_vtp with the files that it names."""
    pv = need("pyvista", "view", "export to vtp")
    folder = output.with_name(f"{output.stem}_vtp")
    check_folder(folder)
    temporary, listed = folder.with_name(folder.name + ".part"), []
    shutil.rmtree(temporary, ignore_errors=True)
    temporary.mkdir()
    try:
        for number, data in chosen:
            for name, mesh in _meshes(pv, data, chosen.contacts(number)).items():
                file = f"{name}_{number:05d}.vtp"
                mesh.save(temporary / file)
                listed.append((data["time"], PARTS.index(name), name, f"{folder.name}/{file}"))
            yield
        shutil.rmtree(folder, ignore_errors=True)
        os.replace(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    with replaced(output) as path:
        path.write_text(collection(listed))
    return [output]


def check_folder(folder):
    """Refuse a folder that is there and holds anything but what we would write."""
    strange = [item.name for item in folder.iterdir() if item.suffix != ".vtp"] if folder.is_dir() else []
    if strange or (folder.exists() and not folder.is_dir()):
        raise FileExistsError(f"output {folder} is there already and holds {strange[0] if strange else 'a file'}; give another name")


def collection(listed):
    """The text of a .pvd file: (time, number of the part, its name, file) of each."""
    rows = [
        f'    <DataSet timestep="{time!r}" part="{part}" name={quoteattr(name)} file={quoteattr(pathlib.PurePosixPath(file).as_posix())}/>'
        for time, part, name, file in listed
    ]
    head = '<?xml version="1.0"?>\n<VTKFile type="Collection" version="0.1" byte_order="LittleEndian">\n  <Collection>\n'
    return head + "\n".join(rows) + "\n  </Collection>\n</VTKFile>\n"


def _meshes(pv, data, contacts):
    """The meshes of one frame by name."""
    cloud = pv.PolyData(data["position"].astype(float)) if len(data["id"]) else pv.PolyData()  # PyVista takes no empty arrays
    for name in (*POINT_DATA, "rank") if len(data["id"]) else ():
        cloud[name] = data[name]
    meshes = {"bodies": cloud, "surfaces": _surfaces(pv, data), "planes": _planes(pv, data)}
    if contacts is not None:
        meshes["contacts"] = _lines(pv, data, contacts)
    return meshes


def _surfaces(pv, data):
    made = surfaces_of(data, np.flatnonzero(~shown_as_points(data)))
    if not len(made.row):
        return pv.PolyData()
    mesh = pv.PolyData.from_regular_faces(made.points, made.triangles)
    for name in ("id", "material", "movable", "velocity"):
        mesh[name] = data[name][made.row]
    mesh["speed"] = np.linalg.norm(data["velocity"], axis=1)[made.row]
    return mesh


def _planes(pv, data):
    points, _, cells = squares(data)
    if not len(points):
        return pv.PolyData()
    lines = np.insert(cells["Lines"], 0, 5, axis=1).ravel() if len(cells["Lines"]) else None
    faces = np.insert(cells["Polygons"], 0, 4, axis=1).ravel() if len(cells["Polygons"]) else None
    return pv.PolyData(points, faces=faces, lines=lines)


def _lines(pv, data, contacts):
    """Contacts as lines from middle to middle by way of the contact point; to a body that is fixed, or has no place, none."""
    if not len(contacts):
        return pv.PolyData()
    ends = [ends_at(data, body, contacts.point) for body in (contacts.body_a, contacts.body_b)]
    points = np.stack([ends[0], contacts.point, ends[1]], axis=1).reshape(-1, 3)
    rows = np.insert(np.arange(len(points)).reshape(-1, 3), 0, 3, axis=1)
    mesh = pv.PolyData(points, lines=rows.ravel())
    force = contacts.impulse / data["frame_dt"]
    for name, values in {
        **{name: getattr(contacts, name) for name in ("body_a", "body_b", "normal", "gap", "impulse")},
        "force": force,
        "force_size": np.linalg.norm(force, axis=1),
        "sliding": contacts.sliding.astype("u1"),
    }.items():
        mesh.cell_data[name] = values
    return mesh


def ends_at(data, bodies, points):
    """(n, 3) m: the middle of each body that can move and is near its contact, else the contact point."""
    order = np.argsort(data["id"])
    row = order[np.minimum(np.searchsorted(data["id"][order], bodies), len(order) - 1)] if len(order) else np.zeros(len(bodies), int)
    if not len(order):
        return points
    middle = data["position"][row].astype(float)
    near = np.linalg.norm(middle - points, axis=1) <= BEYOND * data["radius"][row]
    return np.where(((data["id"][row] == bodies) & (data["movable"][row] > 0) & near)[:, None], middle, points)
