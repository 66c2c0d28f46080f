"""Videos: as many frames and pixels as asked for, read back by other programs; a camera that stays; nothing half written."""

import h5py
import imageio_ffmpeg
import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

import gravel as gv
from gravel.cli import main
from gravel.io.vtkhdf import ResultWriter
from gravel.view.picture import Painter
from gravel.view.video import chosen_frames

FRAMES = 6
LOOK = {"size": (200, 150), "colour": "material", "camera": "0,-10,0,0,0,0,0,0,1,20", "caption": False}
PER_METRE = 150 / (2 * np.tan(np.radians(10)) * 10)  # of that camera


@pytest.fixture(scope="module")
def result(tmp_path_factory):
    """A green ball that stays, an orange one that moves by 0.2 m a frame, a third one that is gone from the fourth on."""
    scene = gv.Scene()
    scene.add_body(gv.Sphere(0.2), (0, 0, 0.5), gv.Material(friction=0.3))
    runner = scene.add_body(gv.Sphere(0.2), (-0.5, 0, -0.5), gv.Material(friction=0.31))
    leaver = scene.add_body(gv.Sphere(0.1), (1.0, 0, 0.8), gv.Material(friction=0.32))
    path = tmp_path_factory.mktemp("video") / "run.vtkhdf"
    simulation = gv.Simulation(scene, 1e-3)
    with ResultWriter(path, simulation) as writer:
        for k in range(FRAMES):
            simulation.positions[runner, 0] = -0.5 + 0.2 * k
            if k == 3:
                simulation.remove(leaver)
            writer.write_frame()
    with h5py.File(path, "r+") as file:  # as if steps lay between
        times = []
        file.visititems(lambda name, item: times.append(item) if name.endswith("Steps/Values") else None)
        for steps in times:
            steps[:] = 0.1 * np.arange(FRAMES)
    return path


def decoded(path):
    """(frames, height, width, 3) from 0 to 1, by ffmpeg."""
    frames = imageio_ffmpeg.read_frames(str(path))
    width, height = next(frames)["size"]
    return np.stack([np.frombuffer(frame, np.uint8).reshape(height, width, 3) for frame in frames]) / 255


def centre(pixels, colour):
    """(x, y) of what is orange or green."""
    strong, weak = {"orange": (0, 2), "green": (1, 0)}[colour]
    y, x = np.nonzero((pixels.argmax(axis=2) == strong) & (pixels.argmin(axis=2) == weak) & (np.ptp(pixels, axis=2) > 0.2))
    return np.array([x.mean() + 0.5, y.mean() + 0.5])


def test_an_mp4_shows_what_moves_and_what_stays(result, tmp_path):
    path = gv.video(result, tmp_path / "run.mp4", fps=10, **LOOK)
    count, seconds = imageio_ffmpeg.count_frames_and_secs(str(path))
    assert count == FRAMES and seconds == pytest.approx(FRAMES / 10, abs=0.01)
    frames = decoded(path)
    assert frames.shape == (FRAMES, 150, 200, 3)
    for k, pixels in enumerate(frames):
        assert np.allclose(centre(pixels, "green"), (100, 75 - 0.5 * PER_METRE), atol=1)
        assert np.allclose(centre(pixels, "orange"), (100 + (-0.5 + 0.2 * k) * PER_METRE, 75 + 0.5 * PER_METRE), atol=1)
    corner = (slice(25, 40), slice(125, 150))  # where the third ball was
    assert frames[2][corner].min() < 0.8 and frames[3][corner].min() > 0.95
    assert list(tmp_path.iterdir()) == [path]


def test_the_camera_of_a_video_sees_all_of_it(result, tmp_path):
    frames = decoded(gv.video(result, tmp_path / "run.mp4", **{**LOOK, "camera": "front", "caption": False}))
    for pixels in frames:
        assert min(pixels[[0, 1, -2, -1]].min(), pixels[:, [0, 1, -2, -1]].min()) > 0.9  # nothing at the borders
    assert np.allclose(*(centre(frames[k], "green") for k in (0, -1)), atol=0.7)
    assert np.ptp([centre(pixels, "orange")[0] for pixels in frames]) > 60


def test_a_gif_has_its_frames_and_its_pace(result, tmp_path):
    path = gv.video(result, tmp_path / "run.gif", fps=20, **{**LOOK, "size": (201, 151)})
    with Image.open(path) as gif:
        assert gif.n_frames == FRAMES and gif.size == (201, 151) and gif.info["duration"] == 50 and gif.info["loop"] == 0
        places = []
        for k in range(FRAMES):
            gif.seek(k)
            places.append(centre(np.asarray(gif.convert("RGB")) / 255, "orange")[0])
    assert np.allclose(np.diff(places), 0.2 * PER_METRE, atol=1.5)


def test_a_camera_that_turns_goes_around(result, tmp_path):
    frames = decoded(gv.video(result, tmp_path / "run.mp4", turn=180 * FRAMES / (FRAMES - 1), **LOOK))
    assert centre(frames[-1], "orange")[0] == pytest.approx(100 - 0.5 * PER_METRE, abs=1.5)  # x = 0.5 m, seen from behind
    assert np.allclose(centre(frames[-1], "green"), centre(frames[0], "green"), atol=1)  # on the axis


def test_odd_sizes_are_made_even_for_mp4(result, tmp_path):
    assert decoded(gv.video(result, tmp_path / "run.mp4", stop=0.15, **{**LOOK, "size": "101x75"})).shape == (2, 76, 102, 3)


def test_frames_are_chosen_by_time(result):
    assert chosen_frames(result, None, None, 1) == [0, 1, 2, 3, 4, 5]
    assert chosen_frames(result, 0.1, 0.4, 1) == [1, 2, 3, 4] and chosen_frames(result, 0.05, None, 2) == [1, 3, 5]
    for times, left in (((0.3, 0.3), 1), ((7.0, None), 0), ((0.4, 0.2), 0)):
        with pytest.raises(ValueError, match=f"needs two frames at least, but from, to and every leave {left} of .* has 6 from 0 to 0.5 s"):
            chosen_frames(result, *times, 1)


@pytest.mark.parametrize(
    "options, words",
    [
        ({"output": "run.avi"}, "output must be a file whose name ends in .mp4 or .gif, not 'run.avi'"),
        ({"fps": 0}, "fps must be greater than 0, not 0"),
        ({"quality": 11}, "quality must be from 1 to 10, not 11"),
        ({"every": 0}, "every must be at least 1, not 0"),
        ({"colour": "contacts"}, "holds no contacts"),
        ({"camera": "1,2"}, "camera must be px,py,pz"),
    ],
)
def test_bad_options_are_refused_and_leave_nothing(result, tmp_path, monkeypatch, options, words):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=words):
        gv.video(result, **{"output": "run.mp4", **options})
    assert not list(tmp_path.iterdir())


def test_results_that_are_none_are_refused(result, tmp_path):
    (tmp_path / "cut.vtkhdf").write_bytes(result.read_bytes()[:5000])
    (tmp_path / "text.vtkhdf").write_text("no result")
    for name in ("cut", "text"):
        with pytest.raises(ValueError, match=f"{name}.vtkhdf is not a result file of gravel"):
            gv.video(tmp_path / f"{name}.vtkhdf", tmp_path / "run.mp4")
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("ending", ["mp4", "gif"])
@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError])
def test_a_stop_in_the_middle_leaves_what_was_there(result, tmp_path, monkeypatch, ending, error):
    before = tmp_path / f"run.{ending}"
    before.write_text("an older video")
    draw, count = Painter.pixels, []

    def failing(self, shown, camera=None):
        count.append(1)
        if len(count) > FRAMES - 1 + 5 * (ending == "gif"):
            raise error()
        return draw(self, shown, camera)

    monkeypatch.setattr(Painter, "pixels", failing)
    with pytest.raises(error):
        gv.video(result, before, **LOOK)
    assert list(tmp_path.iterdir()) == [before] and before.read_text() == "an older video"


def test_the_command_line_makes_videos_and_pictures(result, tmp_path):
    options = ["--size", "120x90", "--camera", "top", "--background", "black", "--clip", "0,0,1,-9", "--limits", "0,1", "--colour", "speed"]
    times = ["--from", "0.1", "--to", "0.35", "--quiet"]
    said = CliRunner().invoke(main, ["video", str(result), "-o", str(tmp_path / "v.gif"), *times, *options])
    assert said.exit_code == 0 and said.output == f"wrote {tmp_path / 'v.gif'}\n", said.output
    with Image.open(tmp_path / "v.gif") as gif:
        assert gif.n_frames == 3 and gif.size == (120, 90)
    said = CliRunner().invoke(main, ["picture", str(result), "-o", str(tmp_path / "p.png"), "--frame", "2", "--no-occlusion", *options])
    assert said.exit_code == 0, said.output
    pixels = np.asarray(Image.open(tmp_path / "p.png"))
    assert pixels.shape == (90, 120, 3) and (pixels[20, 60] == 0).all()
    refused = CliRunner().invoke(main, ["video", str(result), "-o", str(tmp_path / "v.avi")])
    assert refused.exit_code == 1 and "ends in .mp4 or .gif" in refused.output
