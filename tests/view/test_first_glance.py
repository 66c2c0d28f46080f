"""What a picture shows at first glance: one colour at rest, nothing under what is written, signs for joints, glass before grains."""

import itertools
import sys

import numpy as np
import pytest
from PIL import Image as PillowImage
from test_picture import CAMERA, GREEN, ORANGE, SIZE, balls, drawn, where

import gravel as gv
from gravel.io.present import frame_of
from gravel.scenes.silo import sheet_around
from gravel.view import caption
from gravel.view.bodies import _between, _glass
from gravel.view.look import Look, chosen_colour, tones_of
from gravel.view.merged import Merged, vertex_normals
from gravel.view.picture import Painter
from gravel.view.plan import plan_of
from gravel.view.subject import Shown

FLOOR = "0,-6,4,0,0,0,0,0,1,40"  # a camera whose picture a floor fills


def bed(speeds, radius=0.1):
    """A scene of a row of balls with such speeds."""
    scene, speeds = gv.Scene(), np.asarray(speeds, float)
    places = [(0.3 * k, 0, 0) for k in range(len(speeds))]
    velocities = np.outer(speeds, (0, 0, 1.0))
    scene.add_bodies(gv.Sphere(np.broadcast_to(radius, len(speeds))), places, GREEN, velocities=velocities)
    return scene


def tones(scene, **look):
    return tones_of([Shown(frame_of(scene), None)], Look(**look))


def hues(pixels):
    """How many of 12 hues the coloured pixels have, but for those that next to none have."""
    chroma = np.ptp(pixels, axis=2) > 0.15
    some = pixels[chroma]
    top, spread = some.argmax(axis=1), np.ptp(some, axis=1)
    after, before = (np.take_along_axis(some, ((top + k) % 3)[:, None], 1)[:, 0] for k in (1, 2))
    turn = (2 * top + (after - before) / spread) % 6
    counts = np.bincount((2 * turn).astype(int) % 12, minlength=12)
    return int((counts > 0.02 * counts.sum()).sum())


# --- at rest
@pytest.mark.parametrize("name", ["speed", "energy"])
def test_what_the_solver_leaves_of_rest_has_one_colour_and_no_scale(name):
    noise = np.random.default_rng(0).uniform(0, 1e-4, 40)
    scene = bed(noise)
    still, moving = tones(scene, colour=name), tones(bed(1e4 * noise), colour=name)
    assert still.limits is None and [words for words, _ in still.legend] == ["at rest"]
    assert len(np.unique(still.of(frame_of(scene), None), axis=0)) == 1
    assert moving.limits is not None and len(np.unique(moving.of(frame_of(bed(1e4 * noise)), None), axis=0)) > 20
    assert hues(drawn(scene, colour=name, camera="front")) == 1 < hues(drawn(bed(1e4 * noise), colour=name, camera="front"))
    assert tones(scene, colour=name, limits=(0, 1e-4)).limits == (0, 1e-4)  # who asks for a scale gets it


def test_a_few_that_move_do_not_stretch_the_scale_over_the_noise_of_the_rest():
    speeds = np.append(np.random.default_rng(0).uniform(0, 1e-4, 60), (0.4, 0.5))
    found = tones(bed(speeds), colour="speed")
    colours = found.of(frame_of(bed(speeds)), None)
    assert found.limits == (0.0, 0.5) and np.ptp(colours[:60], axis=0).max() < 0.01 < np.ptp(colours, axis=0).max()


def test_auto_at_rest_is_one_colour_or_size():
    rest = np.full(40, 1e-4)
    assert chosen_colour([frame_of(bed(rest))]) == "material"
    assert chosen_colour([frame_of(bed(rest, np.linspace(0.05, 0.1, 40)))]) == "radius"
    assert chosen_colour([frame_of(bed(np.append(rest, 1.0)))]) == "material"  # one of 41 moves
    assert chosen_colour([frame_of(bed(np.full(40, 1.0), np.linspace(0.05, 0.1, 40)))]) == "speed"


# --- what is written
def on_a_floor(**options):
    scene = gv.Scene()
    scene.add_body(gv.Plane((0, 0, 1)), fixed=True)
    rng = np.random.default_rng(1)
    places = np.column_stack([rng.uniform(-4, 4, (300, 2)), np.full(300, 0.2)])
    scene.add_bodies(gv.Sphere(0.2), places, GREEN, velocities=rng.normal(size=(300, 3)))
    return gv.picture(scene, size=(600, 450), camera=FLOOR, **options).pixels


@pytest.mark.parametrize("background", ["white", "#203040"])
def test_nothing_runs_under_the_colour_bar(background):
    """Around the bar and its words there is only paper, ink and the bar itself, though floor and grains fill the picture."""
    bare, pixels = (on_a_floor(colour="speed", background=background, caption=words) for words in (False, True))
    paper = np.array(PillowImage.new("RGB", (1, 1), background).getpixel((0, 0)))
    left, right, top, bottom = int(0.925 * 600), 600 - 12, int(caption.BAR[0] * 450), int(caption.BAR[1] * 450)
    beside, before = pixels[top:bottom, left:right].astype(int), bare[top:bottom, left:right].astype(int)
    grey = beside - paper
    alike = np.ptp(np.where(np.abs(grey) > 3, grey, 0), axis=2) < 60  # paper and the greys of letters on it
    assert alike.mean() > 0.99 and (np.abs(grey).max(axis=2) <= 3).mean() > 0.7
    assert (np.abs(before - paper).max(axis=2) <= 3).mean() < 0.1  # where there had been something
    for place in ((slice(14, 20), slice(8, 10)), (slice(-20, -14), slice(8, 10))):  # left of the title and of the scale bar
        assert (pixels[place] == paper).all() and (bare[place] != paper).any()


def test_where_there_is_only_background_there_is_no_card():
    scene = balls((0, 0, 0))
    captioned, bare = (gv.picture(scene, size=SIZE, camera=CAMERA, background="#f4f4f0", caption=c).pixels for c in (True, False))
    changed = (captioned != bare).any(axis=2)
    assert changed[:150].sum() < 0.1 * 150 * 400 and (captioned[~changed] == bare[~changed]).all()


def test_springs_and_joints_have_a_legend():
    def legend(*joints):
        scene = gv.Scene()
        bob = scene.add_body(gv.Sphere(0.3), (0.3, 0, -0.3), GREEN)
        for joint in joints:
            scene.add_joint(joint(bob))
        return gv.picture(scene, size=SIZE, camera=CAMERA).pixels[:, int(0.78 * SIZE[0]) :].min(axis=2) < 100

    def spring(bob):
        return gv.Spring(None, bob, point=(-0.6, 0, 0.8), point_b=(0.3, 0, -0.3), stiffness=10.0)

    def ball(bob):
        return gv.Spherical(None, bob, point=(0.3, 0, 0.3))

    def rows(dark):
        """Runs of rows with ink, at the right border."""
        return sum(1 for some, _ in itertools.groupby(dark.any(axis=1)) if some)

    none, one, two = legend(), legend(spring), legend(spring, ball)
    assert not none.any() and rows(one) == 1 and rows(two) == 2


def test_the_names_of_joints_in_the_legend_are_those_that_are_drawn():
    scene = gv.Scene()
    a, b = (scene.add_body(gv.Sphere(0.3), (x, 0, 0), GREEN) for x in (-0.5, 0.5))
    scene.add_joint(gv.Distance(a, b, point=(-0.5, 0, 0), point_b=(0.5, 0, 0)))
    seen, one = [], Shown(frame_of(scene), None)
    with Painter([one], Look(size=SIZE, camera=CAMERA)) as painter, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys.modules[Painter.__module__], "written_on", lambda *given: seen.append(given[-1]))
        painter.pixels(one)
    assert seen == [("distance",)] and set(seen[0]) <= set(caption.SIGNS)


# --- glass
def test_the_part_of_a_sheet_before_the_grains_is_glass_and_the_part_behind_is_not():
    mesh, rng = sheet_around([(0.3, 0.0), (1.0, 0.8), (1.0, 2.5)], 48), np.random.default_rng(0)
    height = rng.uniform(0.1, 1.5, 400)
    reach = 0.9 * np.minimum(0.3 + 0.7 * height / 0.8, 1.0) * np.sqrt(rng.uniform(size=400))
    angle = rng.uniform(0, 2 * np.pi, 400)
    stream = np.column_stack([rng.uniform(-0.2, 0.2, (30, 2)), rng.uniform(-1, 0, 30)])  # grains that have left it
    grains = np.concatenate([np.column_stack([reach * np.cos(angle), reach * np.sin(angle), height]), stream])
    surface = Merged(np.asarray(mesh.vertices), np.asarray(mesh.triangles), None, None, None)
    before = _between(surface, np.array([0, -12.0, 2.0]), grains)
    middles = surface.points[surface.triangles].mean(axis=1)
    outward = middles * (1, 1, 0) / np.linalg.norm(middles[:, :2], axis=1)[:, None]
    facing = outward @ (0, -1.0, 0)
    assert before[facing > 0.15].all() and not before[facing < -0.15].any()


def test_glass_is_clear_straight_on_and_less_so_along_its_face():
    mesh = sheet_around([(1.0, 0.0), (1.0, 2.0)], 96)
    points, triangles = np.asarray(mesh.vertices), np.asarray(mesh.triangles)
    scene = gv.Scene()
    scene.add_body(gv.Sphere(0.5), (0, 0, 1))
    plan = plan_of([Shown(frame_of(scene), None)], Look(camera="0,-9,1,0,0,1"))
    painted = _glass(Merged(points, triangles, None, None, vertex_normals(points, triangles)), plan)
    along = np.abs(points[:, 0]) > 0.98
    white = painted[:, :3].min(axis=1) > 0.9
    assert painted[along, 3].min() > 2 * np.median(painted[np.abs(points[:, 0]) < 0.5, 3])
    assert 0 < white.mean() < 0.25 and painted[white, 3].min() > 0.3  # a glint, where it mirrors the lamp
    assert painted.min() >= 0 and painted.max() <= 1


def test_grains_behind_glass_are_seen_in_their_colours():
    scene = balls((0, 0, 0), radius=0.4)
    plain = len(where(drawn(scene), 0))
    scene.add_body(sheet_around([(0.6, -0.5), (0.6, 0.5)], 64), (0, 0, 0), ORANGE, fixed=True)
    pixels = drawn(scene)
    assert len(where(pixels, 0)) > 0.75 * plain
    assert ((pixels < 0.99).any(axis=2)).sum() > 1.3 * plain  # and the glass too


def test_a_coarse_round_mesh_has_no_facets():
    """A drum of 64 flat sides is drawn round: along a row its brightness has no steps."""
    scene = gv.Scene()
    scene.add_body(sheet_around([(0.6, -0.5), (0.6, 0.5)], 64), (0, 0, 0), fixed=True)
    row = drawn(scene, occlusion=False, camera="0,-10,0,0,0,0,0,0,1,10")[150, 115:285].mean(axis=1)
    assert np.abs(np.diff(row)).max() < 0.02 < 0.05 < np.ptp(row)


# --- files
@pytest.mark.parametrize("ending, kind", [("png", "PNG"), ("jpg", "JPEG"), ("webp", "WEBP")])
def test_the_ending_says_what_kind_of_file_a_picture_is(tmp_path, ending, kind):
    path = gv.picture(balls((0, 0, 0)), tmp_path / f"a.{ending}", size=SIZE)
    with PillowImage.open(path) as image:
        assert image.format == kind and image.size == SIZE
        assert np.abs(np.asarray(image.convert("RGB")).astype(int) - gv.picture(balls((0, 0, 0)), size=SIZE).pixels).mean() < 3
