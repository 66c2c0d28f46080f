"""The bench of result files tells what the file is."""

import h5py
import numpy as np

import gravel as gv
from gravel.bench.files import read, write


def test_rows_tell_frames_bytes_and_shares(tmp_path):
    scene = gv.Scene()
    scene.add_bodies(gv.Sphere(0.1), np.stack(np.unravel_index(np.arange(3000), (20, 15, 10)), axis=1))
    path = tmp_path / "r.vtkhdf"
    row = write(gv.Simulation(scene, 1e-3), path, 6)
    assert row["spheres"] == 3000 and row["frames"] == 6 and row["ms per step"] > 0
    assert 0 < row["% of a run of 20 steps beside stepping"] < 100
    with gv.open_result(path) as result:
        assert len(result) == 6 and all(len(frame) == 3000 for frame in result)
    with h5py.File(path) as file:  # places in double precision, turns and two velocities in single: 3 * 8 + (4 + 3 + 3) * 4 bytes a body
        block = file["VTKHDF/bodies"]
        moving = [block["Points"], *(block["PointData"][name] for name in ("velocity", "angular_velocity", "quaternion"))]
        assert sum(data.nbytes for data in moving) == 6 * 3000 * 64 and len(block["PointData/mass"]) == 3000
    read_row = read(path)
    assert 0 < read_row["reading, ms per frame"] <= read_row["at worst"]
    assert read_row["of that before reading"] <= read_row["peak memory GB"] < 2
