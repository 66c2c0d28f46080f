"""Results as a VTKHDF time series: one HDF5 file that ParaView, PyVista and h5py open.

VTK finds blocks in it (``gravel.io.blocks``): ``bodies``, a point for each that is there and has a size, with point data (id, velocity,
radius, shape, extent, quaternion, mass, inertia, material, geometry); ``surfaces``, ``fixed`` and ``planes``
(``gravel.io.surface_blocks``); ``contacts`` where they were asked for. What bodies hardly ever change is written again only when it has
changed.

Beside the group ``VTKHDF`` the file holds ``gravel``: the planes of each frame, gravity and how long before the frame its contacts were
found, the step reports over time, how the run was made (``gravel.io.about``), ``joints`` with a row of ``sim.joints`` for each frame,
``contact_table`` (``gravel.io.contact_results``), and ``geometries/<number>``, the surfaces of hulls, compounds and meshes as ``vertices``
and ``triangles`` in the frame of their bodies, which scale them by extent[0]. A geometry is written when a body first has it. The numbers
in ``shape`` are named in the attribute ``shapes``, and ``run`` is the run that the frames are of: one that goes on from a checkpoint goes
on with its file. The file is flushed after every frame, so that what was written before a stop can be read. ``gravel.io.result`` reads it
all. Of many processes, each writes such a file of its own bodies, with the point data ``rank``, and ``gravel.io.parts`` an index to them.
"""

import numpy as np

from gravel.io.about import (
    STAGES,
    StageSeconds,
    about_in,
    about_run,
    lay_out_anchors,
    write_about,
    write_anchors,
    write_body_names,
    write_materials,
)
from gravel.io.blocks import FEW, ROOT, Block, Common, append, block_lengths, grow, lay_out_root
from gravel.io.contact_results import GROUP, ContactsGroup, contact_lengths
from gravel.io.frames import (  # noqa: F401  # files are read here, too
    frames_before,
    hair,
    open_result,
    open_to_write,
    read_frame,
    read_joints,
    read_reports,
    reading,
    writing,
)
from gravel.io.layout import (
    BODY_FORM,
    CIRCUMSTANCES,
    CONSTANT,
    ENDINGS,
    FRAME_BYTES,
    GEOMETRY_BYTES,
    JOINT_FIELDS,
    POINT_DATA,
    RANK,
    REPORT_FIELDS,
    SHAPES,
    SPARE_BYTES,
    VERSION,
    cell_numbers,
)
from gravel.io.outputs import Reserve, check_ending, check_room, check_writable
from gravel.io.present import FIELDS, body_values, plane_values
from gravel.io.surface_blocks import SurfaceBlocks, surface_lengths
from gravel.io.triangles import kind_of, surface_of
from gravel.io.validate_file import stored
from gravel.shapes import PLANE
from gravel.state import SHAPE, STATUS, can_move

MOST = float(np.finfo("f4").max)


class ResultWriter:
    """Writes frames of a simulation; use it with ``with``."""

    def __init__(self, path, simulation, contacts=False, keep=None, rank=None, surfaces="auto"):
        """``contacts``: whether each frame gets the contacts of its step. ``keep``: how many frames of the file stay (None: those of an
        earlier time of this very run); ``rank``: of the process, which is then written with its own bodies. ``surfaces``: whether bodies
        that are no spheres are also written as surfaces, for other programs (``SurfaceBlocks``); not of one process of many."""
        self.path = check_writable(path)
        check_ending("save", path, ENDINGS)
        self.geometries = {}  # number -> surface, of those that bodies may have
        self.written = 0  # how many of these are in the file
        self.simulation = simulation
        self.reports = []
        self.rank = rank
        self.form = BODY_FORM if rank is None else BODY_FORM._replace(point_data={**POINT_DATA, **RANK}, constant=(*CONSTANT, *RANK))
        self.bodies = self.contact_rows = 0  # in the last frame
        kept = frames_before(self.path, simulation)
        kept = kept if keep is None else min(keep, kept)
        self._look_at_geometries()
        self._check_room()
        self.file = open_to_write(self.path, "r+" if kept else "w")
        self.reserve = Reserve(self.path)
        try:
            if kept:
                with reading(self.path):
                    self._cut(kept)
            else:
                self._lay_out()
            self._begin(contacts, False if rank is not None else surfaces, about_in(self.file) if kept else None)
        except BaseException:
            self.file.close()
            self.reserve.give_back()
            raise

    def _begin(self, contacts, surfaces, before):
        """What writes the parts of a frame, and what is told of the run from here on."""
        root, own, simulation = self.file[ROOT], self.file["gravel"], self.simulation
        self.common = Common(self.file)
        self.block = Block(root, "bodies", self.common, self.form)
        self.contacts = ContactsGroup(own, root, self.common) if contacts or GROUP in own else None
        self.with_contacts = contacts
        self.surfaces = SurfaceBlocks(self.file, self.common, surfaces)
        self.columns = {name: own[name] for name in (*REPORT_FIELDS, *CIRCUMSTANCES, "plane_position", "plane_normal")}
        self.stages = StageSeconds(own)
        write_about(own, about_run(simulation, np.count_nonzero(simulation.movable), before))
        own.attrs["run"] = simulation.run_id
        own.attrs["dt"] = simulation.dt
        own.attrs["solver"] = simulation.solver.describe()

    def _lay_out(self):
        """The groups and arrays of an empty file."""
        root = lay_out_root(self.file)
        own = self.file.create_group("gravel")
        Block(root, "bodies", Common(self.file), self.form)
        for name in REPORT_FIELDS:
            grow(own, name, (), "f8")
        own.create_group("geometries")
        joints = own.create_group("joints")
        for name in JOINT_FIELDS:
            columns = (3,) if name in ("force", "torque") else ()
            sizes = {"maxshape": (None, None, *columns), "chunks": (16, 64, *columns)}
            joints.create_dataset(name, (0, 0, *columns), "f8", fillvalue=np.nan, **sizes)
        lay_out_anchors(joints)
        own.attrs["version"] = VERSION
        own.attrs["shapes"] = SHAPES
        for name in ("plane_position", "plane_normal"):
            grow(own, name, (3,), "f8", FEW)
        for name, (shape, dtype) in CIRCUMSTANCES.items():
            grow(own, name, shape, dtype, FEW)

    def _cut(self, frames):
        """Leave so many frames of an earlier part of the run, and the reports up to now; what lies behind them goes, also a frame that
        was begun and not finished."""
        root, own = self.file[ROOT], self.file["gravel"]
        lengths = list(self._lengths(frames))
        for data, length in lengths:
            if len(data) < length:
                raise ValueError(f"{data.name} is shorter than its frames")
        for steps in (root["Steps"], *(root[name]["Steps"] for name in root["Assembly"])):
            steps.attrs.modify("NSteps", frames)
        for data, length in lengths:
            data.resize(length, axis=0)
        for number in [number for number in own["geometries"] if int(number) >= len(self.simulation.geometries)]:
            del own["geometries"][number]
        self.written = len(own["geometries"])

    def _lengths(self, frames):
        """(array, rows that so many frames have in it), for all arrays of the file."""
        root, own = self.file[ROOT], self.file["gravel"]
        joints = own["joints"]
        yield from Common(self.file).lengths(frames)
        yield from block_lengths(root["bodies"], self.form, frames)
        yield from surface_lengths(root, frames)
        reports = stored(own, "time")[: min(len(stored(own, name)) for name in (*REPORT_FIELDS, STAGES))]
        steps_taken = int(np.count_nonzero(reports <= self.simulation.time + hair(self.simulation)))
        planes = int(stored(own, "plane_count")[:frames].sum())
        for name in (*REPORT_FIELDS, STAGES):
            yield stored(own, name), steps_taken
        for name in JOINT_FIELDS:  # none before the first joint was made
            yield stored(joints, name), min(frames, len(joints[name]))
        for name in ("plane_count", "gravity", "frame_dt", "contact_lag"):
            yield stored(own, name), frames
        yield stored(own, "cell"), min(frames, len(own["cell"]))  # none where space is not periodic
        for name in ("plane_position", "plane_normal"):
            yield stored(own, name), planes
        yield from contact_lengths(self.file, frames)

    def _look_at_geometries(self):
        """Make the surfaces of those that are new."""
        for number, geometry in enumerate(self.simulation.geometries[len(self.geometries) :], len(self.geometries)):
            vertices, triangles = surface_of(geometry)
            self.geometries[number] = {"vertices": vertices.astype("f4"), "triangles": triangles.astype("i4"), "kind": kind_of(geometry)}

    def _check_room(self, more=0):
        """Refuse to go on where a frame, geometries that are new and so many bytes more may not fit."""
        new = [self.geometries[number] for number in range(self.written, len(self.geometries))]
        room = sum(GEOMETRY_BYTES + surface["vertices"].nbytes + surface["triangles"].nbytes for surface in new)
        needed = SPARE_BYTES + FRAME_BYTES * len(self.simulation.engine.ids()) + room + more
        check_room(self.path, needed)
        return needed

    def _write_geometries(self):
        for number in range(self.written, len(self.geometries)):
            surface, group = self.geometries[number], self.file["gravel/geometries"].create_group(str(number))
            group.attrs["shape"] = surface["kind"]
            group["vertices"], group["triangles"] = surface["vertices"], surface["triangles"]
        self.written = len(self.geometries)

    def observe(self, report):
        """Take a step's report into the record."""
        self.reports.append([getattr(report, name) for name in REPORT_FIELDS])
        self.stages.observe(report.seconds)

    def write_frame(self):
        """The present state becomes one more frame."""
        bodies, frame = self._own_bodies(), len(self.block.counts)
        planes = bodies["tag"][:, SHAPE] == PLANE
        walls = plane_values({name: values[planes] for name, values in bodies.items()})
        bodies = {name: values[~planes] for name, values in bodies.items()} if planes.any() else bodies
        _check_sizes(self.path, bodies["id"], values := body_values(bodies))
        values = {**values, "rank": np.full(len(bodies["id"]), self.rank or 0)}
        self._look_at_geometries()
        data = {**values, **walls, "position": bodies["position"], "gravity": self.simulation.gravity, "geometries": self.geometries}
        self.reserve.ask(self._check_room(self.surfaces.prepare(data, lambda rows: self._moves(bodies, rows))))
        if self.contacts is not None:  # first, for it may find no room
            self.contact_rows = self.contacts.write(frame, self.simulation if self.with_contacts else None, self.reserve)
        self._write_geometries()
        self._write_circumstances(walls)
        self.block.write(bodies["position"], values)
        self.surfaces.write()
        self.common.add_frame(self.simulation.time)
        self._write_joints(frame)
        self._seal(frame + 1)
        self.bodies = len(bodies["id"])
        self._flush_reports()

    def _seal(self, frames):
        """From now on readers find so many frames; the bodies' last, which gravel counts by."""
        self.surfaces.seal(frames)
        if self.contacts is not None:
            self.contacts.block.seal(frames)
        self.common.seal(frames)
        self.block.seal(frames)

    def _moves(self, bodies, rows):
        """Whether each of some bodies moves: by forces, by a motion, or because somebody moves it."""
        moved = np.isin(bodies["id"][rows], list(self.simulation.motions)) | bodies["velocity"][rows].any(axis=1)
        return can_move(bodies["tag"][rows, STATUS]) | moved

    @property
    def constants_at(self):
        """The row at which the last frame finds what hardly changes."""
        return self.block.shared.at

    def _own_bodies(self):
        """Fields of the bodies that this process writes."""
        simulation = self.simulation
        bodies = simulation.views.present(*FIELDS)
        if simulation.team.size == 1:
            return bodies
        own = np.isin(bodies["id"], simulation.own_ids())
        return {name: values[own] for name, values in bodies.items()}

    def _write_circumstances(self, walls):
        """What may change from frame to frame beside the bodies; ``walls``: where the planes are."""
        simulation = self.simulation
        for name, values in {**walls, "plane_count": [len(walls["plane_normal"])]}.items():
            append(self.columns[name], values)
        append(self.columns["gravity"], simulation.gravity)
        append(self.columns["frame_dt"], [simulation.dt])
        if simulation.cell is not None:
            append(self.columns["cell"], [cell_numbers(simulation.cell)])
        append(self.columns["contact_lag"], [simulation.contact_lag])
        write_materials(self.file["gravel"], simulation)
        write_body_names(self.file["gravel"], simulation.body_names)

    def _write_joints(self, frame):
        """A row for the frame; joints that come later are NaN in the rows before. Of several processes the first writes them."""
        if not len(self.simulation.mechanism) or self.simulation.team.rank:
            return
        table, group = self.simulation.joints, self.file["gravel/joints"]
        write_anchors(group, self.simulation.mechanism)
        for name in JOINT_FIELDS:
            group[name].resize(frame + 1, axis=0)
            group[name].resize(len(table), axis=1)
            group[name][frame] = getattr(table, name)

    def _flush_reports(self):
        columns = np.array(self.reports, float).reshape(-1, len(REPORT_FIELDS))
        for k, name in enumerate(REPORT_FIELDS):
            append(self.columns[name], columns[:, k])
        self.reports.clear()
        self.stages.flush()
        self.file.flush()

    def close(self):
        if not self.file:
            return
        try:
            self.reserve.ask(SPARE_BYTES)
            self._flush_reports()
        finally:
            self.file.close()
            self.reserve.give_back()

    def abandon(self):
        """Close the file without asking other processes (``gravel.io.parts``)."""
        self.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def _check_sizes(path, ids, values):
    """Refuse a frame with numbers that its types cannot hold: a file with infinite ones could not be read."""
    for name, (_, dtype) in POINT_DATA.items():
        if dtype != "f4":
            continue
        sizes = np.abs(np.asarray(values[name], float))
        sizes = sizes.max(axis=1) if sizes.ndim > 1 else sizes
        wrong = np.flatnonzero(sizes > MOST)
        if len(wrong):
            size, words = sizes[wrong[0]], f"more than {MOST:.2g}, the most that output {path} can hold"
            raise ValueError(f"{name} of body {ids[wrong[0]]} is {size:.3g}, {words}")
