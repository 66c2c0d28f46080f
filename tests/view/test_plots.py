"""Plots: the numbers in their lines against formulas, other readers and sums; their words; what is refused."""

import pathlib
import subprocess
import sys

import h5py
import numpy as np
import pytest
from click.testing import CliRunner
from scipy import stats
from test_bad_input import refuse

import gravel as gv
from gravel.cli import main
from gravel.io.vtkhdf import ResultWriter
from gravel.view.plots import KINDS
from gravel.view.plots.convergence import ITERATING, residual_histories
from gravel.view.plots.style import COLOURS

RADIUS, DENSITY = 0.02, 2500.0


def boxed(bodies=120, seed=0):
    """Balls of mixed sizes that fall into a box of planes."""
    rng, scene, stone = np.random.default_rng(seed), gv.Scene(), gv.Material(density=DENSITY, friction=0.5)
    for normal, place in (((0, 0, 1), 0), ((1, 0, 0), -0.1), ((-1, 0, 0), -0.1), ((0, 1, 0), -0.1), ((0, -1, 0), -0.1)):
        scene.add_body(gv.Plane(normal), np.multiply(normal, place), stone, fixed=True)
    k = np.arange(bodies)
    places = np.stack([k % 4 - 1.5, k // 4 % 4 - 1.5, k // 16 + 0.6], 1) * 0.048 + rng.uniform(-1e-3, 1e-3, (bodies, 3))
    scene.add_bodies(gv.Sphere(RADIUS * rng.uniform(0.8, 1.1, bodies)), places, stone)
    return gv.Simulation(scene, 2e-3)


@pytest.fixture(scope="module")
def bed(tmp_path_factory):
    """(path of a result with contacts, the simulation at its end, path of a checkpoint)."""
    folder, sim = tmp_path_factory.mktemp("bed"), boxed()
    sim.run(0.6, folder / "bed.vtkhdf", 0.05, checkpoint=folder / "bed.h5", contacts=True)
    return folder / "bed.vtkhdf", sim, folder / "bed.h5"


@pytest.fixture(scope="module")
def fall(tmp_path_factory):
    """A result of two balls that fall freely, without contacts saved."""
    scene = gv.Scene(gravity=(0, 0, -10))
    scene.add_bodies(gv.Sphere([0.1, 0.2]), [(0, 0, 3), (1, 0, 5)], gv.Material(density=1000))
    path = tmp_path_factory.mktemp("fall") / "fall.vtkhdf"
    gv.Simulation(scene, 1e-2).run(0.5, path, 0.1)
    return path


def stored(path, name):
    """An array of a result, as HDF5 has it."""
    with h5py.File(path) as file:
        return file["gravel"][name][:]


def lines(figure, panel=0):
    """Label -> (x, y) of the curves of a panel."""
    return {line.get_label(): line.get_data() for line in figure.axes[panel].lines}


def first_line(figure, panel=0):
    return figure.axes[panel].lines[0].get_data()


# --- over the steps
@pytest.mark.parametrize(
    ("kind", "columns"),
    [
        ("contacts", ["contacts"]),
        ("residual", ["residual", "residual_rms"]),
        ("iterations", ["iterations"]),
        ("penetration", ["max_penetration"]),
    ],
)
def test_curves_over_steps_are_what_the_file_holds(bed, kind, columns):
    figure = gv.plot(bed[0], kind)
    for line, name in zip(figure.axes[0].lines, columns):
        assert np.array_equal(line.get_xdata(), stored(bed[0], "time"))
        assert np.array_equal(line.get_ydata(), stored(bed[0], name))


def test_penetration_is_beside_one_percent_of_the_median_radius(bed):
    radius = bed[1].radii[bed[1].movable]  # of the simulation
    y = lines(gv.plot(bed[0], "penetration"))["1 % of the median radius"][1]
    assert y[0] == pytest.approx(0.01 * np.median(radius), rel=1e-6)


def test_steps_that_did_not_converge_are_marked(tmp_path):
    sim = boxed(48)
    sim.solver = gv.GaussSeidel(iterations=2)
    sim.run(0.3, tmp_path / "rough.vtkhdf", 0.1)
    failed = stored(tmp_path / "rough.vtkhdf", "converged") == 0
    assert 0 < failed.sum() < len(failed)
    (label,) = [label for label in lines(gv.plot(tmp_path / "rough.vtkhdf", "residual")) if label.startswith("not converged")]
    assert label == f"not converged ({failed.sum()} of {len(failed)} steps)"
    x, y = lines(gv.plot(tmp_path / "rough.vtkhdf", "residual"))[label]
    assert np.array_equal(x, stored(tmp_path / "rough.vtkhdf", "time")[failed])
    assert np.array_equal(y, stored(tmp_path / "rough.vtkhdf", "residual")[failed])


def test_stages_are_the_mean_of_the_steps_after_the_first(bed):
    with h5py.File(bed[0]) as file:
        data = file["gravel/stage_seconds"]
        means = dict(zip(data.attrs["columns"], 1e3 * data[1:].astype(float).mean(axis=0)))
    bars, over_time = gv.plot(bed[0], "stages").axes
    found = {label.get_text(): bar.get_width() for label, bar in zip(bars.get_yticklabels(), bars.patches)}
    assert found == pytest.approx(means, rel=1e-6)
    assert list(found.values()) == sorted(found.values(), reverse=True)
    assert len(over_time.collections) == 6  # five stages, and the others together


# --- over the frames
def test_energy_of_a_free_fall(fall):
    found = lines(gv.plot(fall, "energy"))
    time, kinetic = found["kinetic"]
    mass = 1000 * 4 / 3 * np.pi * np.array([0.1**3, 0.2**3])
    assert kinetic == pytest.approx(0.5 * mass.sum() * (10 * time) ** 2, rel=1e-5)
    dropped = 0.5 * 10 * time**2
    assert found["potential, above its lowest"][1] == pytest.approx(mass.sum() * 10 * (dropped[-1] - dropped), abs=1e-2)
    assert found["total"][1] == pytest.approx(np.full(6, mass.sum() * 10 * dropped[-1]), rel=1e-4)


def raining(path, speed=2.0, spacing=0.25):
    """Balls in a column that fall at the same speed, without gravity; returns the mass of one."""
    scene = gv.Scene(gravity=(0, 0, 0))
    places = [(0, 0, spacing * (k + 0.5)) for k in range(20)]
    scene.add_bodies(gv.Sphere(0.1), places, gv.Material(density=1000), velocities=[(0, 0, -speed)] * 20)
    gv.Simulation(scene, 5e-3).run(1.0, path, 0.125)
    return 1000 * 4 / 3 * np.pi * 0.1**3


def test_flow_of_a_column_that_falls(tmp_path):
    mass = raining(tmp_path / "rain.vtkhdf")
    figure = gv.plot(tmp_path / "rain.vtkhdf", "flow", outlet=0.0)
    time, passed = first_line(figure)
    assert passed == pytest.approx(mass * np.arange(9), rel=1e-5)  # one in every 0.125 s, the time between frames
    assert set(lines(gv.plot(tmp_path / "rain.vtkhdf", "energy"))) == {"kinetic"}  # nothing has weight
    (stairs,) = figure.axes[1].patches
    assert stairs.get_data().values == pytest.approx(np.full(8, mass * 2.0 / 0.25), rel=1e-5)


def test_beverloo_stands_beside_the_flow(bed):
    with gv.open_result(bed[0]) as result:
        diameter = 2 * result[0].radii[result[0].movable].mean()
    density = 0.58 * DENSITY  # by default
    for options, expected in (
        ({}, 0.58 * density * np.sqrt(9.81) * (0.2 - 1.5 * diameter) ** 2.5),
        ({"opening": "square"}, 4 / np.pi * 0.58 * density * np.sqrt(9.81) * (0.2 - 1.5 * diameter) ** 2.5),
        (
            {"density": 1000.0, "coefficient": 0.6, "empty": 1.4, "diameter": 0.01},
            0.6 * 1000 * np.sqrt(9.81) * (0.2 - 0.014) ** 2.5,
        ),
        ({"diameter": 0.2}, 0.0),  # as large as the opening
    ):
        figure = gv.plot(bed[0], "flow", outlet=0.1, width=0.2, **options)
        (law,) = [y[0] for label, (_, y) in lines(figure, 1).items() if label.startswith("Beverloo")]
        assert law == pytest.approx(expected, rel=1e-5)
    x, y = lines(gv.plot(bed[0], "flow", outlet=0.1, width=0.2))["Beverloo's law"]
    assert np.diff(y) / np.diff(x) == pytest.approx(0.58 * density * np.sqrt(9.81) * (0.2 - 1.5 * diameter) ** 2.5, rel=1e-5)


def test_bodies_that_are_removed_above_the_outlet_are_told(tmp_path):
    scene = gv.Scene(gravity=(0, 0, 0))
    scene.add_bodies(gv.Sphere(0.1), [(0, 0, 1), (0, 1, 1), (0, 2, 1)], velocities=[(0, 0, -1)] * 3)
    sim = gv.Simulation(scene, 1e-2)
    sim.run(0.5, tmp_path / "r.vtkhdf", 0.1, observers=[lambda s: s.remove([1]) if s.steps == 15 else None])
    figure = gv.plot(tmp_path / "r.vtkhdf", "flow", outlet=0.0)
    assert any("1 bodies were removed above the outlet" in text.get_text() for text in figure.axes[0].texts)
    below = gv.plot(tmp_path / "r.vtkhdf", "flow", outlet=2.0)
    assert not below.axes[0].texts


@pytest.mark.parametrize("name", ["stress", "coordination", "fabric", "fraction", "kinetic-energy", "potential-energy"])
def test_measures_of_frames(bed, name):
    measure = getattr(gv.measures, {"fraction": "packing_fraction"}.get(name, name.replace("-", "_")))
    with gv.open_result(bed[0]) as result:
        expected = np.ravel(measure(result[-1]))
    found = [line.get_ydata()[-1] for axes in gv.plot(bed[0], name).axes for line in axes.lines]
    assert found == pytest.approx(expected, rel=1e-12)


def test_joints_of_a_pendulum(tmp_path):
    scene = gv.Scene(gravity=(0, 0, -9.81))
    rod = scene.add_body(gv.Box((0.1, 0.1, 0.1)), (0, 0, -1), mass=2.0)
    scene.add_joint(gv.Revolute(None, rod, point=(0, 0, 0), axis=(0, 1, 0)))
    sim = gv.Simulation(scene, 1e-3)
    sim.run(0.1, tmp_path / "p.vtkhdf", 0.02)
    figure = gv.plot(tmp_path / "p.vtkhdf", "joints")
    (force,) = [axes for axes in figure.axes if axes.get_ylabel() == "reaction force, N"]
    assert force.lines[0].get_ydata()[1:] == pytest.approx(2.0 * 9.81, rel=1e-5)  # it hangs at rest
    assert not [axes for axes in figure.axes if "motor" in axes.get_ylabel()]  # it has none


# --- of a moment
def test_forces_are_those_of_the_contact_table(bed):
    with h5py.File(bed[0]) as file:
        table, dt = file["gravel/contact_table"], file["gravel"].attrs["dt"]
        last = slice(int(table["count"][:-1].sum()), None)
        force = (table["normal"][last].astype(float) * table["impulse"][last]).sum(axis=1) / dt
    force = force[force > 1e-6 * force.mean()]
    scaled = force / force.mean()
    (x, y), (tail, density) = lines(gv.plot(bed[0], "forces", bins=12)).values()
    count, edges = np.histogram(scaled, 12, (0, scaled.max()))
    assert x == pytest.approx((0.5 * (edges[1:] + edges[:-1]))[count > 0], rel=1e-6)
    assert y == pytest.approx((count / len(force) / np.diff(edges))[count > 0], rel=1e-6)
    _, scale = stats.expon.fit(scaled[scaled > 1], floc=1)
    assert np.log(density[0] / density[1]) / (tail[1] - tail[0]) == pytest.approx(1 / scale, rel=1e-6)
    assert density[0] == pytest.approx(np.mean(scaled > 1) / scale, rel=1e-6)  # as many of them as there are


def test_packing_of_a_cubic_lattice_is_pi_over_six():
    scene = gv.Scene()
    k = np.arange(64)
    scene.add_bodies(gv.Sphere(0.5), np.stack([k % 4, k // 4 % 4, k // 16], 1) + 0.5)
    figure = gv.plot(gv.Simulation(scene, 1e-3), "profile", bins=4)
    fraction, height = first_line(figure)
    assert fraction == pytest.approx(np.full(4, np.pi / 6), rel=1e-9) and height == pytest.approx([0.5, 1.5, 2.5, 3.5])


def test_profiles_add_up_to_the_whole(bed):
    path, _, _ = bed
    with gv.open_result(path) as result:
        frame = result[-1]
        heights, radii = frame.positions[frame.movable, 2], frame.radii[frame.movable]
        whole = gv.measures.coordination(frame)
    figure = gv.plot(path, "profile", bins=7)
    (fraction, _), (partners, middles) = first_line(figure, 0), first_line(figure, 1)
    low, high = (heights - radii).min(), (heights + radii).max()
    x, y = (frame.positions[frame.movable, axis] for axis in (0, 1))
    area = ((x + radii).max() - (x - radii).min()) * ((y + radii).max() - (y - radii).min())
    assert fraction.sum() * area * (high - low) / 7 == pytest.approx(4 / 3 * np.pi * (radii**3).sum(), rel=1e-6)
    count, edges = np.histogram(heights, 7, (low, high))
    assert middles == pytest.approx(0.5 * (edges[1:] + edges[:-1]), rel=1e-6)
    assert np.nansum(partners * count) / count.sum() == pytest.approx(whole, rel=1e-9)


def test_velocity_profile_of_a_shear():
    scene = gv.Scene()
    places = np.array([(x, 0, z) for x in range(3) for z in range(5)], float)
    scene.add_bodies(gv.Sphere(0.4), places)
    sim = gv.Simulation(scene, 1e-3)
    sim.velocities[:] = np.stack([0.3 * places[:, 2], np.full(15, 0.1), 0.2 * places[:, 0]], 1)
    value, height = first_line(gv.plot(sim, "velocity", component="x", bins=5, region=((-1, -1, -0.5), (3, 1, 4.5))))
    assert height == pytest.approx(np.arange(5)) and value == pytest.approx(0.3 * np.arange(5))
    along, value = first_line(gv.plot(sim, "velocity", axis="x", component="z", bins=4, region=((-0.5, -1, -1), (3.5, 1, 5))))
    assert along == pytest.approx(np.arange(4))  # drawn to the right
    assert value[:3] == pytest.approx(0.2 * np.arange(3)) and np.isnan(value[3])  # nobody is there
    speed, _ = first_line(gv.plot(sim, "velocity", component="speed", bins=1))
    assert speed == pytest.approx(np.linalg.norm([0.6, 0.1, 0.2]))
    assert set(lines(gv.plot(sim, "velocity"))) == {"along x", "along y", "along z"}


def test_sizes_by_number_and_by_mass():
    scene = gv.Scene()
    scene.add_bodies(gv.Sphere([1.0, 1.0, 1.0, 2.0]), [(5 * k, 0, 0) for k in range(4)])
    numbers, shares = gv.plot(gv.Simulation(scene, 1e-3), "sizes", bins=2).axes
    assert [bar.get_height() for bar in numbers.patches] == [3, 1]
    x, y = shares.lines[0].get_data()
    below = y[x < 4].max()
    assert below == pytest.approx(100 * 3 / 11) and y[-1] == pytest.approx(100) and x[-1] == 4


def sized(radii):
    scene = gv.Scene()
    scene.add_bodies(gv.Sphere(radii), [(5 * k, 0, 0) for k in range(len(radii))])
    numbers = gv.plot(gv.Simulation(scene, 1e-3), "sizes").axes[0]
    return numbers, [bar.get_height() for bar in numbers.patches]


def test_two_sizes_are_shown_as_two():
    """Of a bed of two sizes there are two bars, both to be seen, however rare one is and however close they are."""
    for small, large, counts in ((0.02, 0.04, (300, 200)), (0.02, 0.2, (997, 3)), (0.100, 0.101, (40, 60))):
        numbers, heights = sized(np.random.default_rng(0).permutation(np.repeat([small, large], counts)))
        assert heights == list(counts)
        assert [label.get_text() for label in numbers.get_xticklabels()] == [f"{2 * small:.4g}", f"{2 * large:.4g}"]
        low, high = numbers.get_ylim()
        place = numbers.transAxes.inverted().transform
        shares = [place(numbers.transData.transform((0, count)))[1] for count in counts]
        assert min(shares) > 0.1 and max(shares) < 1  # of the height of the panel


def test_sizes_that_spread_are_a_histogram_with_a_peak_for_each_mode():
    rng = np.random.default_rng(0)
    numbers, heights = sized(np.concatenate([rng.normal(0.02, 0.001, 500), rng.normal(0.2, 0.01, 30)]))
    filled = np.array(heights) > 0
    assert len(heights) == 30 and sum(heights) == 530 and numbers.get_xscale() == "log" == numbers.get_yscale()
    assert np.count_nonzero(np.diff(np.concatenate([[0], filled, [0]])) > 0) == 2  # two groups of bars, and a gap between them
    numbers, heights = sized(rng.uniform(0.02, 0.04, 300))
    assert numbers.get_xscale() == "linear" and sum(heights) == 300


# --- solvers
def test_residual_over_iterations_is_what_solvers_leave(bed):
    _, sim, checkpoint = bed
    found = residual_histories(sim, iterations=30)
    assert set(found) == set(ITERATING) == {"gauss-seidel", "jacobi", "apgd", "bb"}
    assert np.ptp([history[0] for history in found.values()]) < 1e-4 * found["bb"][0]  # the same problem, to single precision
    assert all(len(history) == 31 for history in found.values())
    for name, solver in (("gauss-seidel", gv.GaussSeidel), ("jacobi", gv.Jacobi)):
        for iterations in (1, 7, 30):
            left = solver(iterations=iterations, tolerance=0.0).run(sim.next_problem()).residual
            assert left == pytest.approx(found[name][: iterations + 1].min() if name == "jacobi" else found[name][iterations], rel=1e-6)
    drawn = lines(gv.plot(checkpoint, "solvers", iterations=30))
    assert drawn["gauss-seidel"][1] == pytest.approx(found["gauss-seidel"], rel=1e-6)
    assert drawn["bb"][1] == pytest.approx(np.minimum.accumulate(found["bb"]), rel=1e-6)  # the best counts
    assert drawn["tolerance of the simulation"][1][0] == pytest.approx(0.2 * 9.81 * 2e-3)


# --- the look, and files
def axis_labels(figure):
    return [label for axes in figure.axes if axes.axison for label in (axes.get_xlabel(), axes.get_ylabel())]


def test_every_axis_has_words(bed):
    options = {"flow": {"outlet": 0.1, "width": 0.1}}
    others = {"mixing", "segregation", "dynamic-angle", "repose", "residence", "machine", "pressure", "wear"}  # test_plots_of_grains.py
    for kind in set(KINDS) - {"joints", "solvers", "log"} - others:
        figure = gv.plot(bed[0], kind, **options.get(kind, {}))
        assert all(axis_labels(figure)), kind
        assert figure.axes[0].lines or figure.axes[0].patches, kind


def test_one_style_with_colours_that_can_be_told_apart(bed):
    figure = gv.plot(bed[0], "stress")
    used = [(line.get_color(), line.get_linestyle()) for line in figure.axes[0].lines]
    assert len(set(used)) == 9 and {colour for colour, _ in used} <= set(COLOURS)
    import matplotlib

    assert matplotlib.rcParams["axes.grid"] is False  # the user's own settings stay


@pytest.mark.parametrize(("ending", "magic"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")])
def test_the_ending_says_how_a_plot_is_written(bed, tmp_path, ending, magic):
    path = gv.plot(bed[0], "contacts", tmp_path / f"c.{ending}")
    assert path == tmp_path / f"c.{ending}" and path.read_bytes().startswith(magic)
    assert [p.name for p in tmp_path.iterdir()] == [f"c.{ending}"]


def test_a_figure_shows_itself_in_a_notebook(bed):
    assert gv.plot(bed[0])._repr_png_()[:4] == b"\x89PNG"


def test_importing_gravel_loads_no_matplotlib():
    script = "import sys, gravel; gravel.cli = __import__('gravel.cli'); print('matplotlib' in sys.modules, 'pyvista' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


# --- curves that scenes leave
def test_a_curve_is_drawn_over_its_first_column(tmp_path):
    (tmp_path / "c.csv").write_text("strain 1,stress Pa,void-ratio 1\n0,0,0.7\n0.1,250,0.6\n")
    stress, ratio = gv.plot(tmp_path / "c.csv").axes
    assert (stress.get_xlabel(), stress.get_ylabel(), ratio.get_ylabel()) == ("strain", "stress, Pa", "void-ratio")
    assert stress.lines[0].get_data()[1].tolist() == [0, 250]


# --- bad input
def empty(path, frames):
    """A result without steps, with so many frames."""
    scene = gv.Scene()
    scene.add_body(gv.Sphere(0.1), (0, 0, 1))
    with ResultWriter(path, gv.Simulation(scene, 1e-3)) as writer:
        for _ in range(frames):
            writer.write_frame()
    return path


def test_bad_results_are_refused_by_name(bed, fall, tmp_path):
    data = bed[0].read_bytes()
    (tmp_path / "cut.vtkhdf").write_bytes(data[: len(data) // 3])
    (tmp_path / "text.vtkhdf").write_text("nothing of ours")
    with h5py.File(tmp_path / "other.vtkhdf", "w") as file:
        file["VTKHDF/Points"] = np.zeros((3, 3))
    for name in ("cut", "text", "other"):
        refuse(lambda name=name: gv.plot(tmp_path / f"{name}.vtkhdf"), f"{name}.vtkhdf", "result")
    refuse(lambda: gv.plot(tmp_path / "none.vtkhdf"), "none.vtkhdf", error=FileNotFoundError)
    refuse(lambda: gv.plot(empty(tmp_path / "e.vtkhdf", 1)), "e.vtkhdf", "no steps")
    for kind in ("energy", "forces", "sizes"):
        refuse(lambda kind=kind: gv.plot(empty(tmp_path / "e.vtkhdf", 0), kind), "e.vtkhdf", "no frames")
    refuse(lambda: gv.plot(empty(tmp_path / "e.vtkhdf", 1), "flow", outlet=0.0), "e.vtkhdf", "frames")
    refuse(lambda: gv.plot(fall, "joints"), "fall.vtkhdf", "no joints")
    for kind in ("forces", "coordination", "fabric", "stress"):
        refuse(lambda kind=kind: gv.plot(fall, kind), "fall.vtkhdf", "--contacts")
    refuse(lambda: gv.plot(bed[0], "forces", frame=0), "none at t = 0")
    refuse(lambda: gv.plot(bed[0], "sizes", frame=99), "99", error=IndexError)


def test_a_profile_without_contacts_says_so(fall):
    figure = gv.plot(fall, "profile")
    assert "--contacts" in figure.axes[1].texts[0].get_text() and len(figure.axes[0].lines) == 1


def test_bad_options_are_refused(bed, tmp_path):
    path, sim, checkpoint = bed
    refuse(lambda: gv.plot(path, "enrgy"), "kind", "did you mean 'energy'")
    refuse(lambda: gv.plot(path, "energy", bins=3), "bins", "energy")
    refuse(lambda: gv.plot(path, "forces", bins=0), "bins", "0")
    refuse(lambda: gv.plot(path, "velocity", axis="w"), "axis", "'w'")
    refuse(lambda: gv.plot(path, "velocity", component="w"), "component", "'w'")
    refuse(lambda: gv.plot(path, "profile", region=gv.SphereRegion((0, 0, 0), 1.0)), "region", "box")
    refuse(lambda: gv.plot(path, "flow"), "outlet")
    refuse(lambda: gv.plot(path, "flow", outlet=0.0, opening="square"), "opening", "width")
    refuse(lambda: gv.plot(path, "flow", outlet=0.0, width=-1.0), "width", "-1")
    refuse(lambda: gv.plot(path, "flow", outlet=0.0, width=1.0, opening="star"), "opening", "'star'")
    refuse(lambda: gv.plot(sim, "energy"), "energy", "result", error=TypeError)
    refuse(lambda: gv.plot(sim, "sizes", frame=2), "frame")
    refuse(lambda: gv.plot(path, "solvers"), "bed.vtkhdf")
    refuse(lambda: gv.plot(sim, "solvers", solvers="ffd"), "solver", "'ffd'")
    refuse(lambda: gv.plot(3.5, "solvers"), "3.5", error=TypeError)
    refuse(lambda: gv.plot("log.csv", "energy"), "energy", "log.csv")
    refuse(lambda: gv.plot(path, "log"), "log", "bed.vtkhdf")
    refuse(lambda: gv.plot(path, output=tmp_path / "a.jpg"), ".png", "'a.jpg'")
    refuse(lambda: gv.plot(path, output=tmp_path / "none" / "a.png"), "none", error=FileNotFoundError)
    with pytest.raises(AttributeError, match="'plott'"):
        gv.plott  # noqa: B018


def test_solvers_with_nothing_to_solve_say_so(fall):
    scene = gv.Scene()
    scene.add_body(gv.Sphere(0.1), (0, 0, 1))
    refuse(lambda: gv.plot(gv.Simulation(scene, 1e-3), "solvers"), "nothing to solve")


# --- the command line
@pytest.fixture
def call(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return lambda *words: CliRunner().invoke(main, [str(word) for word in words])


def test_kinds_in_the_command_line(call, bed, tmp_path):
    for words, name in (
        ((bed[0], "velocity", "--axis", "x", "--component", "z", "--region", "-1,-1,0,1,1,1", "--bins", 3, "-o", "v.svg"), "v.svg"),
        ((bed[0], "flow", "--outlet", 0.1, "--width", 0.1, "--opening", "square", "-o", "f.png"), "f.png"),
        ((bed[2], "solvers", "--iterations", 3, "--solver", "apgd", "--solver", "bb", "-o", "s.png"), "s.png"),
        (("pile", "solvers", "--iterations", 3, "--bodies", 20, "--time", 0.3), "pile-solvers.png"),
    ):
        done = call("plot", *words)
        assert done.exit_code == 0 and f"wrote {name}" in done.output, done.output
        assert (tmp_path / name).stat().st_size > 5000
    for words, said in (
        ((bed[0], "energy", "--joints"), "different plots"),
        ((bed[0], "velocity", "--region", "1,2,3"), "six numbers"),
        ((bed[0], "energy", "--bodies", 3), "--bodies"),
        ((bed[0], "energy", "--outlet", 0), "outlet"),
        (("pile", "solvers", "--bodies", 1), "bodies must be at least"),
    ):
        done = call("plot", *words)
        assert done.exit_code == 1 and said in done.output and "Traceback" not in done.output, done.output


def test_the_help_has_a_row_for_each_kind(call):
    rows = [line.split() for line in call("plot", "--help").output.splitlines()]
    assert {row[0] for row in rows if row} >= set(KINDS)


def test_the_default_name_is_beside_the_result(call, bed):
    for kind, ending in ((None, "plot"), ("contacts", "contacts")):
        done = call("plot", bed[0], *([kind] if kind else []))
        assert done.output.strip() == f"wrote {pathlib.Path(bed[0]).with_name(f'bed-{ending}.png')}"


@pytest.mark.parametrize(
    "text, words", [("time,a,b\n# s,m,m\n0,1,1\n2,2\n", "row 2 has 2 numbers for 3 columns"), ("time\n# s\n1\n", "no column")]
)
def test_logs_with_short_rows_are_refused(tmp_path, text, words):
    (tmp_path / "log.csv").write_text(text)
    with pytest.raises(ValueError, match=words):
        gv.plot(tmp_path / "log.csv")


def test_a_run_that_begins_without_bodies_is_plotted_from_the_first_that_come(tmp_path):
    scene = gv.Scene()
    scene.add_body(gv.Plane(), fixed=True)
    sim = gv.Simulation(scene, 1e-2)
    come = lambda s: s.add_bodies(gv.Sphere(0.1), [(0.3 * k, 0, 0.5) for k in range(5)]) if s.steps == 2 else None  # noqa: E731
    sim.run(0.1, tmp_path / "late.vtkhdf", 0.01, observers=[come], contacts=True)
    for kind, options in (("fraction", {}), ("stress", {}), ("flow", {"outlet": 0.2, "width": 0.5})):
        gv.plot(tmp_path / "late.vtkhdf", kind, output=tmp_path / f"{kind}.png", **options)
    with gv.open_result(tmp_path / "late.vtkhdf") as result, pytest.raises(TypeError, match="the plot energy is drawn over a run"):
        gv.plot(result[-1], "energy")
    with pytest.raises(TypeError, match="source of a plot must be the path of a result"):
        gv.plot(scene, "sizes")
