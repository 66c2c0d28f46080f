"""``gravel scenes``, ``run``, ``robot``: list and run simulations."""

import dataclasses
import pathlib
import sys
from types import SimpleNamespace
from typing import NamedTuple

import click

from gravel import checks, scenes
from gravel.cli.group import main
from gravel.cli.measuring import processor
from gravel.io.vtkhdf import check_writable
from gravel.mpi.launch import domain_from, run_again, without_option
from gravel.running.processes import launched
from gravel.scenefile import is_scene_file, load_scene_file
from gravel.scenefile.diagnostics import printable
from gravel.simulation import Simulation
from gravel.solvers import SOLVERS


@main.command("scenes")
def list_scenes():
    """List the built-in scenes."""
    for name in scenes.NAMES:
        click.echo(f"{name:12} {scenes.describe(name)}")


@main.command()
@click.argument("scene")
@click.option("--bodies", type=int, help="Number of movable bodies (default: the scene's own).")
@click.option("--time", "duration", type=float, help="Simulated time in s (default: the scene's own).")
@click.option("--dt", type=float, help="Time step in s (default: the scene's own).")
@click.option("--solver", help=f"Solver: one of {', '.join(SOLVERS)} (default: gauss-seidel).")
@click.option(
    "--iterations",
    type=int,
    help="Maximum number of solver iterations per step, 1.5 times as many in small scenes (default: 600; others 300, ffd 1).",
)
@click.option("--tolerance", type=float, help="Residual at which the solver stops, m/s (default: 20 % of gravity times dt, rms 1 %).")
@click.option("--friction", help="coulomb, or cone, the papers' model, which lifts sliding bodies (default: the scene's own, or coulomb).")
@click.option("--precision", help="single or double (default: the scene's own, or single).")
@click.option("--joints", help="direct (all joints at once) or iterative, as in the papers (default: direct).")
@click.option("--device", help="cpu, cuda (the first GPU), cuda:1 and so on, or warp:cpu (default: cpu, or that of the resumed run).")
@click.option("--threads", type=int, help="Number of threads (default: OMP_NUM_THREADS, or all cores).")
@click.option("--ranks", type=int, help="Number of MPI processes that share the scene (needs the extra mpi; default: one).")
@click.option("--domain", help="Domain decomposition: bisection, hexagons, or a grid such as 4x2x1 (default: bisection).")
@click.option("--seed", type=int, help="Seed of random positions and sizes (default: 0, or from the file).")
@click.option("--output", "-o", help="Result file (default: SCENE.vtkhdf, or from the scene file); a resumed run continues its file.")
@click.option("--every", type=float, help="Simulated seconds between frames (default: 50 frames).")
@click.option("--contacts", is_flag=True, help="Save contacts and their forces with every frame.")
@click.option("--surfaces/--no-surfaces", default=None, help="Save surfaces of shapes for ParaView (default: if they are not too large).")
@click.option("--checkpoint", help="Checkpoint file, written at the end and every --checkpoint-every seconds.")
@click.option("--checkpoint-every", type=float, help="Simulated seconds between checkpoints.")
@click.option(
    "--resume", help="Continue from a checkpoint of this scene to the given time; --dt, --solver, --friction and the like change the run."
)
@click.option("--picture/--no-picture", default=None, help="Write a PNG of the last frame beside the result (default: yes).")
@click.option("--view", "viewed", is_flag=True, help="Open a browser page that follows the run and can pause and step it.")
@click.option("--report", "with_report", is_flag=True, help="Write an HTML report beside the result, as gravel report does.")
@click.option("--outside-files", is_flag=True, help="Allow a scene file to read and write outside its own folders.")
@click.option("--quiet", is_flag=True, help="Hide the progress bar.")
def run(scene, **options):
    """Run a built-in SCENE or a scene file (.yaml), check its physics, and write a result file and a picture.

    Exit code 0: all checks of the scene's physics passed; 3: one failed. `gravel scenes` lists the scenes; `gravel init` writes a file.
    """
    asked = SimpleNamespace(scene=scene, **options)
    check_names(asked)
    asked.domain = "auto" if asked.domain is None else domain_from(asked.domain)
    if asked.ranks is not None and not launched():
        sys.exit(run_again(asked.ranks, without_option(sys.argv[1:], "--ranks")))
    simulation, setup, changes = resumed(asked) if asked.resume else begun(asked)
    wanted = outputs_of(asked, setup)
    if asked.with_report:
        check_writable(wanted.result.with_suffix(".html"), ".part")
    introduce(simulation, scene, changes)
    until = setup.time if asked.duration is None else asked.duration
    page = watch(simulation, scene, wanted.result) if asked.viewed else None
    observers = setup.watchers()
    report = simulation.run(until, wanted.result, progress=not asked.quiet, observers=observers, interrupt="return", **wanted.of_run)
    failed = finish(scene, simulation, setup, report, wanted.result, wanted.picture, until, asked.with_report)
    if page is not None:
        show_result(page, simulation, wanted.result)
    if failed:
        sys.exit(3)


def check_names(asked):
    """Refuse unknown names before anything is built."""
    if asked.solver is not None:
        checks.choice("solver", asked.solver, tuple(SOLVERS))
    if not is_scene_file(asked.scene):
        scenes.module_of(asked.scene)
    elif asked.bodies is not None:
        raise ValueError(f"--bodies goes with a built-in scene; {asked.scene} itself defines the number of bodies")


def said(asked, *names):
    """Those of the named options that were given, by name."""
    return {name: value for name in names if (value := getattr(asked, name)) is not None}


def begun(asked):
    """(simulation, setup, no changes) of a scene from its start."""
    setup = setup_of(asked.scene, asked.bodies, asked.seed, asked.outside_files)
    device = asked.device or "cpu"
    options = {**setup.options, **({} if device == "cpu" else {"precision": "single"}), **said(asked, "friction", "precision", "joints")}
    own, limits = options.pop("solver", None), said(asked, "iterations", "tolerance")
    if own is not None and asked.solver is None:
        method = dataclasses.replace(own, **limits)
    else:
        method = other_solver(own, SOLVERS[asked.solver or "gauss-seidel"], limits)
    dt = setup.dt if asked.dt is None else asked.dt
    simulation = Simulation(setup.scene, dt, method, threads=asked.threads, domain=asked.domain, device=device, **options)
    simulation.origin = origin_of_setup(setup, asked.scene, asked.bodies, asked.seed)
    return simulation, setup, []


def other_solver(was, kind, limits):
    """A solver of another kind, with the given tolerance and iterations."""
    if was is None:
        return kind(**limits)
    kept = {} if was.local or kind.local else {"iterations": was.iterations}  # FFD takes one, which is no limit for others
    return kind(**{"tolerance": was.tolerance, **kept, **limits})


class Outputs(NamedTuple):
    """The files that a run writes."""

    result: pathlib.Path
    picture: bool
    of_run: dict  # the arguments of ``Simulation.run``


def outputs_of(asked, setup):
    """Outputs from the command line, else from the scene file, else the defaults."""
    written = getattr(setup, "output", {})
    result = pathlib.Path(asked.output or written.get("file") or f"{pathlib.Path(asked.scene).stem}.vtkhdf")
    of_run = {name: written.get(name) if getattr(asked, name) is None else getattr(asked, name) for name in ("every", "checkpoint_every")}
    of_run["checkpoint"] = asked.checkpoint or written.get("checkpoint")
    of_run["contacts"] = asked.contacts or written.get("contacts", False)
    of_run["surfaces"] = "auto" if asked.surfaces is None else asked.surfaces
    return Outputs(result, written.get("picture", True) if asked.picture is None else asked.picture, of_run)


def introduce(simulation, scene, changes):
    """Print what is run, on which device and with which settings."""
    say, several = speaker(simulation), f"{simulation.processes.size} processes x " if simulation.processes.size > 1 else ""
    say(f"device {simulation.device} ({processor()}), {several}threads {simulation.threads}, precision {simulation.precision}")
    joints = f"{len(simulation.mechanism)} joints, " if len(simulation.mechanism) else ""
    method = f"{simulation.solver.describe()}, friction {simulation.friction}"
    (movable,) = simulation.processes.total(simulation.movable.sum())
    say(f"{scene}: {int(movable)} bodies, {joints}dt {simulation.dt:g} s, {method}")
    if changes:
        say(f"changed at {simulation.time:g} s: {', '.join(changes)}")


def watch(simulation, scene, output):
    """A page that follows the run."""
    page = simulation.view(browser=False, title=scene, result=str(output))
    click.echo(f"viewer at {page.url}")
    if not page.open():
        click.echo("no browser was found: open this address in a browser")
    return page


def show_result(page, simulation, output):
    """The run is over: its page shows the result file, until Ctrl-C."""
    from gravel.cli.looking import serve
    from gravel.view.viewer.sources import Recorded

    page.source.finish(simulation)
    page.server.show(Recorded(output))
    serve(page, False)


def speaker(simulation):
    """A function that prints, on the first process only."""
    return click.echo if simulation.processes.rank == 0 else lambda words: None


def setup_of(scene, bodies, seed, outside_files=False):
    """The setup of a built-in scene, or of a scene file."""
    return load_scene_file(scene, seed, outside_files) if is_scene_file(scene) else scenes.build(scene, bodies, 0 if seed is None else seed)


def origin_of_setup(setup, scene, bodies, seed):
    """The origin of a scene, as a checkpoint stores it."""
    if is_scene_file(scene):
        return setup.origin()
    return {"scene": scene, "bodies": scenes.module_of(scene).BODIES if bodies is None else bodies, "seed": 0 if seed is None else seed}


def resumed(asked):
    """(the simulation of a checkpoint, the setup of its scene, the changes); refuses any other scene."""
    from gravel.io.checkpoint import origin_of

    path, scene = asked.resume, asked.scene
    own, origin = {"scene": pathlib.Path(scene).name if is_scene_file(scene) else scene, **said(asked, "bodies", "seed")}, origin_of(path)
    for name, was in origin.items():
        if own.get(name) not in (None, was):
            raise ValueError(f"{name} must be {was} to continue from {path}, not {own[name]}")
    own = {"seed": 0, **own, **origin}
    setup = setup_of(scene, own.get("bodies"), own["seed"], asked.outside_files)
    if is_scene_file(scene):
        setup.go_on(origin)
    given = {"laws": setup.scene.mechanism.function_laws(), "motions": setup.scene.motions}
    simulation = Simulation.load(path, asked.threads, **given, domain=asked.domain, device=asked.device)
    if simulation.count < len(setup.scene):
        raise ValueError(f"{path} holds {simulation.count} bodies, too few for this scene; give the same --bodies and --seed as before")
    return simulation, setup, change(simulation, asked)


def change(simulation, asked):
    """Apply the requested changes to a resumed simulation; return them in words. Refuse changes of settings that a run keeps."""
    for name, value in (("precision", simulation.precision), ("joints", simulation.joint_mode)):
        if getattr(asked, name) not in (None, value):
            raise ValueError(f"{name} must be {value} to continue from {asked.resume}, not {getattr(asked, name)}: it is fixed in a run")
    applied = []
    if asked.dt is not None:
        applied.append(f"dt {asked.dt:g} s (was {simulation.dt:g})")
        simulation.dt = asked.dt
    if asked.friction is not None:
        applied.append(f"friction {asked.friction} (was {simulation.friction})")
        simulation.friction = asked.friction
    limits = said(asked, "iterations", "tolerance")
    if asked.solver is not None or limits:
        was = simulation.solver
        kind = type(was) if asked.solver is None else SOLVERS[asked.solver]
        simulation.solver = dataclasses.replace(was, **limits) if kind is type(was) else other_solver(was, kind, limits)
        applied.append(f"{simulation.solver.describe()} (was {was.describe()})")
    return applied


def finish(scene, simulation, setup, report, output, with_picture, until, with_report=False):
    """Checks, picture, report and the last lines of a run; returns whether a check failed."""
    say, first_process = speaker(simulation), simulation.processes.rank == 0
    rate, joints = (report.seconds - report.first_seconds) / max(report.steps - 1, 1), len(simulation.mechanism)
    first = f", the first of them {report.first_seconds:.1f} s"
    ending = ", stopped by Ctrl-C" if report.interrupted else ""
    say(f"{report.steps} steps in {report.seconds:.1f} s{first} ({1e3 * rate:.2f} ms a step after that){ending}")
    say(report.convergence())
    failed, found = False, []
    if report.interrupted or until < setup.time:
        say("checks of the physics: skipped, because the run is shorter than the scene's own")
    else:
        found = setup.checks(simulation, report)
        for check in found:
            failed |= not check.passed
            say(f"  {'ok    ' if check.passed else 'FAILED'} {check.name}: {check.detail}")
    if setup.curve is not None and first_process:
        setup.curve.write(output.with_suffix(".csv"))
        say(f"wrote {output.with_suffix('.csv')}: {', '.join(setup.curve.columns)}")
    if with_picture and first_process:
        draw(output)
    if with_report and first_process:
        tell(output, found)
    say(
        f"wrote {output}: {report.contacts} contacts, worst residual {report.residual:.3g} m/s, "
        f"worst penetration {report.max_penetration:.3g} m" + (f", worst joint violation {report.joint_violation:.2g} m" if joints else "")
    )
    return failed


@main.command()
@click.argument("file")
@click.option("--base", default="floating", show_default=True, help="Root link of a URDF file: floating or fixed.")
@click.option("--hold", type=float, help="Stiffness of servos that hold every joint at its start, N m/rad or N/m (default: no servos).")
@click.option("--damping", type=float, help="Damping of these servos, N m s/rad or N s/m (default: 0.05 s times the stiffness).")
@click.option("--time", "duration", type=float, default=1.0, show_default=True, help="Simulated time in s; 0: only print what was read.")
@click.option("--dt", type=float, default=1e-3, show_default=True, help="Time step in s.")
@click.option("--output", "-o", help="Result file (default: FILE's name with .vtkhdf, in the current folder).")
@click.option("--picture/--no-picture", default=True, help="Write a PNG of the last frame beside the result.")
@click.option("--outside-files", is_flag=True, help="Allow meshes and includes from outside the robot's folder and package.")
def robot(file, base, hold, damping, duration, dt, output, picture, outside_files):
    """Read a robot from a URDF FILE, or from MJCF (.xml), put it on a floor and simulate it.

    Prints its links and joints, and what was simplified or left out."""
    from gravel.cli.robot_trial import describe, on_a_floor

    damping = 0.05 * hold if hold and damping is None else damping or 0.0
    scene, made = on_a_floor(file, base, hold, damping, outside_files)
    for line in describe(scene, made):
        click.echo(printable(line))
    if duration <= 0:
        return
    simulation = Simulation(scene, dt, precision="double")
    result = pathlib.Path(output or f"{pathlib.Path(file).stem}.vtkhdf")
    start = simulation.positions[simulation.movable].mean(axis=0)
    report = simulation.run(duration, result)
    moved = simulation.positions[simulation.movable].mean(axis=0) - start
    click.echo(f"{report.steps} steps in {report.seconds:.1f} s; mean displacement ({', '.join(f'{x:.3f}' for x in moved)}) m")
    if picture:
        draw(result)
    click.echo(f"wrote {result}: {report.contacts} contacts, worst joint violation {report.joint_violation:.2g} m")


def tell(result, checks):
    """Write the HTML report, if its extra is installed."""
    try:
        from gravel.view.report import report

        click.echo(f"report {report(result, checks=checks)}")
    except RuntimeError as error:
        click.echo(f"no report: {error}")


def draw(result):
    """Write a picture of the last frame, if its extra is installed."""
    try:
        from gravel.view.picture import picture

        click.echo(f"picture {picture(result, result.with_suffix('.png'))}")
    except RuntimeError as error:
        click.echo(f"no picture: {error}")
