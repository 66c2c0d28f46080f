"""Pictures: bodies where the camera's formula puts them, scale and colour bars, floor, clipping, forces and joints; bad input."""

import io
import re
import subprocess
import sys

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from PIL import Image as PillowImage

import gravel as gv
from gravel.io.present import frame_of
from gravel.view import overlays
from gravel.view.camera import Camera, aim, parse
from gravel.view.caption import Bar, scale_bar, ticks
from gravel.view.colouring import PALETTE
from gravel.view.look import Look, chosen_colour, scale_of, tones_of
from gravel.view.picture import Painter
from gravel.view.subject import Shown

GREEN, ORANGE = gv.Material(friction=0.3), gv.Material(friction=0.31)  # materials 0 and 1 of a scene, in the palette's colours
SIZE = (400, 300)
CAMERA = "0,-10,0,0,0,0,0,0,1,20"  # from 10 m in front: x to the right, z up


def balls(*places, radius=0.2, **options):
    """A scene with a ball of another material at each place."""
    scene = gv.Scene()
    for place, material in zip(places, (GREEN, ORANGE)):
        scene.add_body(gv.Sphere(radius), place, material, **options)
    return scene


def drawn(scene, **options):
    """The pixels of a picture without caption, from 0 to 1."""
    return gv.picture(scene, **{"size": SIZE, "camera": CAMERA, "caption": False, "colour": "material", **options}).pixels / 255


def where(pixels, number):
    """(x, y) of the pixels that are drawn in the hue of a colour of the palette, however bright they are."""
    hue = np.array(to_rgb(PALETTE[number])) - min(to_rgb(PALETTE[number]))
    chroma = pixels - pixels.min(axis=2, keepdims=True)
    strong = np.linalg.norm(chroma, axis=2)
    like = (chroma @ hue) / np.maximum(strong * np.linalg.norm(hue), 1e-9)
    y, x = np.nonzero((strong > 0.15) & (like > 0.97))
    return np.stack([x + 0.5, y + 0.5], axis=1)


def projected(point):
    """Where CAMERA sees a point, and how many pixels a metre is there, by the formula of a pinhole."""
    x, y, z = point
    per_metre = SIZE[1] / (2 * np.tan(np.radians(10)) * (10 + y))
    return np.array([SIZE[0] / 2 + x * per_metre, SIZE[1] / 2 - z * per_metre]), per_metre


@pytest.mark.parametrize("occlusion", [True, False])
@pytest.mark.parametrize("place", [(0, 0, 0), (0.9, 0, 0.5), (-0.7, 2, -0.6)])
def test_a_ball_is_where_the_camera_sees_it(place, occlusion):
    found, (centre, per_metre) = where(drawn(balls((0, 0, 50), place), occlusion=occlusion), 1), projected(place)
    assert np.linalg.norm(found.mean(axis=0) - centre) < 1.5
    assert len(found) == pytest.approx(np.pi * (0.2 * per_metre) ** 2, rel=0.08)


@pytest.mark.parametrize(
    "preset, seen",
    [
        ("front", {"x": (1, 0), "z": (0, -1)}),
        ("back", {"x": (-1, 0), "z": (0, -1)}),
        ("left", {"y": (-1, 0), "z": (0, -1)}),
        ("right", {"y": (1, 0), "z": (0, -1)}),
        ("top", {"x": (1, 0), "y": (0, -1)}),
        ("iso", {"z": (0, -1)}),
        ("auto", {"z": (0, -1)}),
    ],
)
def test_presets_look_from_where_they_say(preset, seen):
    for axis, direction in seen.items():
        step = np.eye(3)["xyz".index(axis)]
        pixels = drawn(balls(-step, step, radius=0.8), camera=preset)
        way = where(pixels, 1).mean(axis=0) - where(pixels, 0).mean(axis=0)
        assert way @ direction > 0.97 * np.linalg.norm(way) > 10
        assert len(where(pixels, 1)) + len(where(pixels, 0)) > 0.1 * SIZE[0] * SIZE[1]  # they fill the picture


def test_a_camera_that_is_aimed_sees_all_points_in_its_room():
    points = np.random.default_rng(0).uniform(-1, 1, (50, 3)) * (3, 1, 2) + (5, 0, 1)
    room = (0.03, 0.86, 0.07, 0.92)
    camera = aim("iso", points, SIZE, room)
    right, up, toward = camera.axes()
    arms = points - camera.place
    slope = np.tan(np.radians(15)) * np.array([4 / 3, 1])
    shares = 0.5 + 0.5 * np.stack([arms @ right, arms @ up], axis=1) / (-(arms @ toward))[:, None] / slope
    low, high = shares.min(axis=0), shares.max(axis=0)
    assert (low > (0.02, 0.05)).all() and (high < (0.88, 0.94)).all()
    assert min((high - low) / (0.83, 0.85)) < 1.02 and max((high - low) / (0.83, 0.85)) > 0.93


def test_the_scale_bar_is_as_long_as_it_says():
    picture = gv.picture(balls((0, 0, 0)), size=SIZE, camera=CAMERA)
    dark = (picture.pixels[-40:, :150] < 60).all(axis=2)
    row = np.flatnonzero(dark[dark.sum(axis=1).argmax()])
    _, per_metre = projected((0, 0, 0))
    assert np.ptp(row) + 1 == pytest.approx(0.5 * per_metre, abs=1)  # 0.5 m, the round length below a fifth of the width
    assert scale_bar(SIZE[0], per_metre)[2] == "500 mm"
    narrow = gv.picture(balls((0, 0, 0)), size=(60, 600), camera=CAMERA).pixels
    assert (narrow[-40:-20, :15] == 255).all() and (narrow[-40:-20, 15:20] < 90).any()  # its words begin where it begins, at the margin
    assert [scale_bar(1000, p)[2] for p in (1e-3, 0.15, 30, 2e4, 7e7)] == ["200 km", "1 km", "5 m", "10 mm", "2 µm"]


def test_the_colour_bar_shows_the_scale_and_its_unit():
    scene = balls((0, 0, 0), velocity=(2.0, 0, 0))
    pixels = gv.picture(scene, size=SIZE, camera=CAMERA, colour="speed", limits=(0, 2), occlusion=False).pixels
    column = pixels[int(0.3 * 300) : int(0.71 * 300), int(0.91 * 400)]
    assert (column[0] - column[-1].astype(int))[0] > 80 > -80 > (column[0] - column[-1].astype(int))[2]  # red above, blue below
    assert [words for _, words in ticks(Bar("speed, m/s", (0, 2)))] == ["0", "0.5", "1", "1.5", "2"]
    assert ticks(Bar("", (0, 2), beyond=True))[-1] == (1.0, "≥ 2")
    plain = gv.picture(scene, size=SIZE, camera=CAMERA, colour="material").pixels
    assert (plain[:, int(0.88 * 400) :] == 255).all()  # numbers of materials have no scale


def test_a_legend_names_materials_beside_their_colours():
    named = gv.Material(friction=0.3, name="chalk")
    scene = gv.Scene()
    scene.add_body(gv.Sphere(0.2), (-0.4, 0, 0), named)
    alone = gv.picture(scene, size=SIZE, camera=CAMERA, colour="material").pixels / 255
    scene.add_body(gv.Sphere(0.2), (0.4, 0, 0), ORANGE)
    pixels = gv.picture(scene, size=SIZE, camera=CAMERA, colour="material").pixels / 255
    tones = tones_of([Shown(frame_of(scene), None)], Look(colour="material"))
    assert [name for name, _ in tones.legend] == ["chalk", "material 1"]
    upper, lower = (where(pixels[:, 280:], number) for number in (0, 1))  # right of the balls
    assert len(upper) > 20 and len(lower) > 20 and upper[:, 1].max() < lower[:, 1].min()
    assert len(where(alone[:, 280:], 0)) == 0  # one material needs no legend


def test_limits_move_colours_along_the_scale():
    scene = balls((0, 0, 0), velocity=(1.0, 0, 0))
    middle = {high: drawn(scene, colour="speed", limits=f"0,{high}", occlusion=False)[150, 200] for high in (1, 100)}
    assert middle[1][0] - middle[1][2] > 0.3 and middle[100][2] - middle[100][0] > 0.3  # red at the top of the scale, blue at its bottom


def test_scales_have_round_ends_and_leave_out_what_is_far_beyond():
    assert scale_of(np.array([0.1, 0.93]), True) == (0.0, 1.0)
    assert scale_of(np.array([0.013, 0.0187]), False) == pytest.approx((0.013, 0.019))
    assert scale_of(np.append(np.full(99, 0.2), 50.0), True) == pytest.approx((0, 0.2))
    assert scale_of(np.zeros(3), True) == (0.0, 1.0) and scale_of(np.zeros(0), True) == (0.0, 1.0)


def test_ambient_occlusion_darkens_where_bodies_touch():
    scene = balls((-0.2, 0, 0), (0.2, 0, 0), radius=0.2)
    with_it, without = (drawn(scene, occlusion=shade) for shade in (True, False))
    beside, far = (slice(145, 155), slice(196, 204)), (slice(146, 154), slice(150, 158))  # between the balls, and on one
    assert with_it[beside].mean() < 0.93 * without[beside].mean()
    assert with_it[far].mean() == pytest.approx(without[far].mean(), rel=0.03)


def test_clip_takes_away_what_is_behind_the_plane():
    scene = balls((-0.6, 0, 0), (0.6, 0, 0))
    both, right = drawn(scene), drawn(scene, clip="2,0,0,-0.4")  # x >= -0.2
    assert len(where(both, 0)) > 300 and len(where(right, 0)) == 0 and len(where(right, 1)) == len(where(both, 1))
    wall = gv.Scene()
    wall.add_body(gv.Box((1.0, 0.1, 1.0)), fixed=True)
    full, half = (drawn(wall, clip=clip, occlusion=False) for clip in (None, (1, 0, 0, 0)))
    assert np.mean(half[:, :195] < 0.98) == 0 < np.mean(full[:, :195] < 0.98)  # walls are cut
    assert np.allclose(half[:, 210:], full[:, 210:], atol=0.1)


def test_planes_are_a_floor_under_bodies_and_hide_nothing_from_below():
    scene = balls((0, 0, 50), (0, 0, 0.2))
    without = drawn(scene, camera="0,-10,3,0,0,0,0,0,1,20")
    scene.add_body(gv.Plane(), fixed=True)
    above, below = (drawn(scene, camera=f"0,-10,{z},0,0,0,0,0,1,20") for z in (3, -3))
    assert (without[200, 40] == 1).all() and (above[200, 40] < 0.99).all()
    assert len(where(above, 1)) == pytest.approx(len(where(below, 1)), rel=0.1) and len(where(below, 1)) > 300


def test_bodies_cast_shadows_on_the_floor_away_from_the_light():
    scene = gv.Scene()
    scene.add_body(gv.Plane(), fixed=True)
    scene.add_body(gv.Sphere(0.2), (0, 0, 0.5), GREEN)
    pixels = drawn(scene, camera="0,-10,6,0,0,0,0,0,1,20", occlusion=False, background="white")
    floor = np.linalg.norm(np.diff(pixels, axis=2), axis=2) < 0.06  # grey: not the ball
    dark = np.argwhere(floor & (pixels.mean(axis=2) < 0.75))
    assert len(dark) > 100 and dark[:, 1].mean() > 205  # light comes from the left


def test_what_is_clipped_away_casts_no_shadow():
    scene = gv.Scene()
    scene.add_body(gv.Plane(), fixed=True)
    scene.add_body(gv.Sphere(0.2), (-1.0, 0, 0.5), GREEN)
    scene.add_body(gv.Box((0.2, 0.2, 0.2)), (1.0, 0, 0.5), GREEN)
    shades = lambda clip: drawn(scene, camera="0,-10,6,0,0,0,0,0,1,20", occlusion=False, clip=clip).mean(axis=2)  # noqa: E731
    whole, left, right = (shades(clip) < 0.75 for clip in (None, "-1,0,0,0", "1,0,0,0"))
    assert whole[:, :200].sum() > 100 < whole[:, 220:].sum()
    assert (left[:, :200] == whole[:, :200]).mean() > 0.99 and left[:, 220:].sum() == 0
    assert (right[:, 220:] == whole[:, 220:]).mean() > 0.99 and right[:, :180].sum() == 0


def pressed(first, second):
    """Two pairs of balls side by side that press each other with so many N."""
    scene = gv.Scene()
    scene.add_bodies(gv.Sphere(0.2), [(-0.8, 0, -0.2), (-0.8, 0, 0.2), (0.8, 0, -0.2), (0.8, 0, 0.2)], GREEN)
    ids, normals = np.array([0, 2]), np.array([(0, 0, 1.0)] * 2)
    impulse = 1e-3 * np.array([first, second])[:, None] * normals
    table = gv.ContactTable(ids, ids + 1, np.array([(-0.8, 0, 0), (0.8, 0, 0.0)]), normals, np.zeros(2), impulse, np.zeros(2, bool))
    return Shown({**frame_of(scene), "frame_dt": 1e-3}, table)


def test_forces_are_rods_as_thick_as_they_are_strong():
    shown = pressed(3.0, 9.0)
    with Painter([shown], Look(size=SIZE, camera=CAMERA, forces=True, caption=False, limits=(0, 9))) as painter:
        pixels = painter.pixels(shown) / 255
    row = np.ptp(pixels[140], axis=1) > 0.3  # pale balls are left out
    left, right = np.count_nonzero(row[:200]), np.count_nonzero(row[200:])
    _, per_metre = projected((0, 0, 0))
    assert right == pytest.approx(2 * 0.3 * 0.2 * per_metre, abs=2) and left == pytest.approx(right / 3, abs=2)


def test_the_colour_of_a_rod_is_that_of_its_force_on_the_bar(monkeypatch):
    given = []
    monkeypatch.setattr(overlays, "add_rods", lambda stage, starts, ends, radii, colours, moved: given.append(colours))
    shown = pressed(60.0, 90.0)
    with Painter([shown], Look(size=SIZE, camera=CAMERA, forces=True, limits=(50, 100))) as painter:
        column = painter.pixels(shown)[int(0.28 * 300) : int(0.72 * 300), int(0.911 * 400)] / 255  # the bar, from 100 N down to 50 N
    for force, colour in zip((90.0, 60.0), given[0]):
        assert np.allclose(column[round((100 - force) / 50 * (len(column) - 1))], colour, atol=0.03)
    with pytest.raises(ValueError, match="limits of forces must be at least 0 N, not -1"):
        Painter([shown], Look(forces=True, limits=(-1, 5)))


def test_forces_and_contact_counts_need_contacts():
    for options in ({"forces": True}, {"colour": "contacts"}):
        with pytest.raises(ValueError, match="need contacts, which a scene does not have"):
            gv.picture(balls((0, 0, 0)), **options)


def test_joints_and_springs_are_drawn():
    scene = gv.Scene()
    bob = scene.add_body(gv.Sphere(0.3), (0.6, 0, -0.5), GREEN)
    plain = drawn(scene)
    scene.add_joint(gv.Spring(None, bob, point=(-0.6, 0, 0.8), point_b=(0.6, 0, -0.5), stiffness=10.0))
    with_spring = drawn(scene)
    line = np.argwhere((plain - with_spring).max(axis=2) > 0.2)
    (start, _), (end, per_metre) = projected((-0.6, 0, 0.8)), projected((0.6, 0, -0.5))
    assert line[:, 0].min() == pytest.approx(start[1], abs=4) and line[:, 1].min() == pytest.approx(start[0], abs=8)
    assert np.linalg.norm(line - end[::-1], axis=1).min() < 0.3 * per_metre  # it goes into the ball
    scene.add_joint(gv.Spherical(None, bob, point=(0.6, 0, 0.5)))
    marked = np.argwhere((with_spring - drawn(scene)).min(axis=2) > 0.3)
    (place, _) = projected((0.6, 0, 0.5))
    assert np.linalg.norm(marked - place[::-1], axis=1).min() < 3


def test_the_colour_that_tells_most_is_chosen():
    def chosen(count, moving=False, radius=0.1, other=None):
        scene = gv.Scene()
        places = [(k, 0, 0) for k in range(count)]
        scene.add_bodies(gv.Sphere(np.broadcast_to(radius, count)), places, GREEN, velocities=[(float(moving), 0, 0)] * count)
        if other:
            scene.add_bodies(gv.Sphere(0.1), [(k, 5, 0) for k in range(other)], ORANGE)
        return chosen_colour([frame_of(scene)])

    assert chosen(3, moving=True) == "body"
    assert chosen(30, moving=True) == "speed" and chosen(30) == "material"
    assert chosen(30, moving=True, other=30) == "material"
    assert chosen(40, moving=True, radius=np.repeat([0.1, 0.3], 20)) == "radius"
    assert chosen(40, moving=True, radius=np.linspace(0.1, 0.3, 40)) == "speed"


def test_without_a_file_an_image_is_returned_that_notebooks_show(tmp_path):
    image = gv.picture(balls((0, 0, 0)), size=SIZE)
    assert PillowImage.open(io.BytesIO(image._repr_png_())).size == SIZE
    again = gv.picture(balls((0, 0, 0)), tmp_path / "a.png", size="400x300", camera=re.search('"(.*)"', repr(image))[1])
    assert again == tmp_path / "a.png"
    assert np.abs(np.asarray(PillowImage.open(again)).astype(int) - image.pixels).mean() < 0.5  # its camera as text gives the same picture
    assert image.save(tmp_path / "b.png").read_bytes() == image._repr_png_()


def test_a_dark_background_gets_light_ink():
    pixels = gv.picture(balls((0, 0, 0)), size=SIZE, camera=CAMERA, background="#101020").pixels
    assert (pixels[150, 10] == (0x10, 0x10, 0x20)).all() and pixels[:20, :120].max() > 220


def test_cameras_as_text():
    camera = parse("1,-2.5,3, 0,0.5,0, 0,1,0, 45")
    assert np.allclose(camera.place, (1, -2.5, 3)) and np.allclose(camera.target, (0, 0.5, 0)) and camera.angle == 45
    assert [np.allclose(a, b) for a, b in zip(parse(str(camera)), camera)] == [True] * 4
    assert parse("5,0,0,0,0,0").angle == 30 and np.allclose(parse("5,0,0,0,0,0").up, (0, 0, 1))
    assert np.allclose(parse("0,0,9,0,0,0").up, (0, 1, 0))  # straight down
    turned = Camera(np.array((2.0, 0, 1)), np.array((1.0, 0, 0)), np.array((0, 0, 1.0))).turned(90)
    assert np.allclose(turned.place, (1, 1, 1))


@pytest.mark.parametrize(
    "options, words",
    [
        ({"camera": "frnt"}, "camera must be one of 'auto', 'front'.* did you mean 'front'"),
        ({"camera": "1,2,3"}, "camera must be px,py,pz,fx,fy,fz.*so 6, 9 or 10 numbers, not 3: '1,2,3'"),
        ({"camera": "1,2,3,4,5,z"}, "camera must be numbers with commas between them, .* not '1,2,3,4,5,z'"),
        ({"camera": "1,2,3,1,2,3"}, "camera must look at another place than its own"),
        ({"camera": "0,0,5,0,0,0,0,0,1"}, "up of the camera must not point along its line of sight"),
        ({"camera": "0,0,5,0,0,0,0,0,0"}, "up of the camera must have a direction"),
        ({"camera": "0,0,5,0,0,0,0,1,0,190"}, "angle of the camera in degrees must be at most 170"),
        ({"camera": "nan,0,5,0,0,0"}, "camera must be numbers"),
        ({"size": "12"}, "size must be WIDTHxHEIGHT in pixels, such as 1200x900, not '12'"),
        ({"size": (0, 900)}, "size must be from 16 to 16384 pixels, but its width is 0"),
        ({"size": "900x99999"}, "its height is 99999"),
        ({"background": "blu"}, "background must be a colour such as white, black or #f4f4f0, not 'blu'"),
        ({"clip": "0,0,0,1"}, "normal of clip must have a direction"),
        ({"clip": "1,0,0"}, "clip must be nx,ny,nz,offset, so 4 numbers, not 3"),
        ({"limits": "2,1"}, "limits must be low,high, the second above the first, not '2,1'"),
        ({"limits": "1"}, "limits must be low,high"),
        ({"colour": "sped"}, "colour must be one of .* did you mean 'speed'"),
        ({"output": "p.gif"}, "output must be a file whose name ends in .png, .jpg, .jpeg or .webp, not 'p.gif'"),
    ],
)
def test_bad_options_are_refused_in_a_sentence(options, words):
    with pytest.raises(ValueError, match=words):
        gv.picture(balls((0, 0, 0)), **options)


@pytest.mark.parametrize("frame, words", [(1.5, "must be a whole number"), (None, "must be a whole number"), (3, "a moment of its own")])
def test_frames_are_numbers_and_those_of_results(frame, words):
    with pytest.raises((TypeError, ValueError), match=words):
        gv.picture(balls((0, 0, 0)), frame=frame)


def test_what_cannot_be_drawn_is_refused(tmp_path):
    with pytest.raises(TypeError, match="source must be the path of a result, a Frame, a Simulation or a Scene, not 3"):
        gv.picture(3)
    with pytest.raises(FileNotFoundError, match="there is no result file"):
        gv.picture(tmp_path / "none.vtkhdf", tmp_path / "p.png")
    assert not list(tmp_path.iterdir())


def run(code, **environment):
    import os

    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **environment})


def test_import_does_not_load_what_draws():
    done = run("import sys, gravel; print('picture' in dir(gravel), {'pyvista', 'vtkmodules', 'matplotlib'} & set(sys.modules))")
    assert done.stdout.split("\n")[0] == "True set()"


@pytest.mark.skipif(sys.platform != "linux", reason="the libraries that are hidden are those of Linux")
def test_no_opengl_is_a_sentence_and_no_crash():
    """No display, and EGL finds no driver: VTK itself would end in a segmentation fault."""
    code = "import gravel as gv\ns = gv.Scene()\ns.add_body(gv.Sphere(0.1))\ngv.picture(s, 'p.png')"
    done = run(code, __EGL_VENDOR_LIBRARY_DIRS="/nonexistent", DISPLAY="")
    assert done.returncode == 1 and "pictures need OpenGL 3.2, and there is none" in done.stderr
