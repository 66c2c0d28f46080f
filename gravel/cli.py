"""The command line: gravel run, scenes, robot, picture, plot, bench, info."""

import dataclasses
import pathlib
import platform
import sys

import click

import gravel
from gravel import scenes
from gravel.mpi.launch import domain_from, run_again, without_option
from gravel.processes import launched, wait_for_the_first
from gravel.simulation import Simulation
from gravel.solvers import SOLVERS


class Commands(click.Group):
    """Errors of the package become one line on stderr and exit code 1; unknown names get the nearest suggested."""

    def invoke(self, context):
        try:
            return super().invoke(context)
        except (click.exceptions.Exit, click.Abort):  # the end of --help is one of these, and a RuntimeError too
            raise
        except (ValueError, TypeError, OSError, RuntimeError, ImportError, MemoryError) as error:
            wait_for_the_first()
            raise click.ClickException(str(error)) from None

    def resolve_command(self, context, arguments):
        try:
            return super().resolve_command(context, arguments)
        except click.UsageError:
            from gravel.checks import choice

            try:
                choice("command", arguments[0], tuple(self.commands))
            except ValueError as error:
                raise click.UsageError(str(error)) from None
            raise


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(gravel.__version__)
def main():
    """Large-scale rigid multibody dynamics with frictional contact."""


@main.command("scenes")
def list_scenes():
    """List the built-in scenes."""
    for name in scenes.NAMES:
        click.echo(f"{name:12} {scenes.describe(name)}")


@main.command()
@click.argument("scene")
@click.option("--bodies", type=int, help="How many bodies that can move (default: the scene's own).")
@click.option("--time", "duration", type=float, help="Simulated time in s (default: the scene's own).")
@click.option("--dt", type=float, help="Step in s (default: the scene's own).")
@click.option("--solver", help=f"One of {', '.join(SOLVERS)} (default: gauss-seidel).")
@click.option("--iterations", type=int, help="Most iterations of the solver in a step (default: 300; ffd takes 1).")
@click.option("--tolerance", type=float, help="Residual in m/s at which the solver stops (default: 5 % of gravity times dt).")
@click.option("--friction", help="cone (convex, as in the papers) or coulomb (default: the scene's own).")
@click.option("--precision", help="single or double (default: the scene's own, or single).")
@click.option("--joints", help="direct (all joints at once) or iterative, as the papers (default: direct).")
@click.option("--device", help="cpu, cuda (the first GPU), cuda:1 and so on, or warp:cpu (default: cpu; on --resume the run's own).")
@click.option("--threads", type=int, help="Threads (default: OMP_NUM_THREADS, or all cores).")
@click.option("--ranks", type=int, help="Run as so many processes that share the scene (needs the extra mpi; default: one).")
@click.option("--domain", help="How processes share space: bisection, hexagons, or a grid such as 4x2x1 (default: bisection).")
@click.option("--seed", type=int, help="Of the random places and sizes (default: 0).")
@click.option("--output", "-o", help="Result file (default: SCENE.vtkhdf); a run that is resumed goes on with its own.")
@click.option("--every", type=float, help="Simulated seconds between two frames (default: 50 frames).")
@click.option("--contacts", is_flag=True, help="Write the contacts and their forces to the result file, with every frame.")
@click.option("--checkpoint", help="Checkpoint file, written at the end and every --checkpoint-every seconds.")
@click.option("--checkpoint-every", type=float, help="Simulated seconds between two checkpoints.")
@click.option(
    "--resume", help="Go on from a checkpoint of this scene, to the time given; --dt, --solver, --friction and the like change it."
)
@click.option("--picture/--no-picture", default=True, help="Whether to leave a PNG of the last frame beside the result.")
@click.option("--quiet", is_flag=True, help="No progress bar.")
def run(
    scene,
    bodies,
    duration,
    dt,
    solver,
    iterations,
    tolerance,
    friction,
    precision,
    joints,
    device,
    threads,
    ranks,
    domain,
    seed,
    output,
    every,
    contacts,
    checkpoint,
    checkpoint_every,
    resume,
    picture,
    quiet,
):
    """Run a built-in SCENE, check its physics, and leave a result file and a picture.

    Exit code 0: all checks of the scene's physics passed; 3: one failed. See `gravel scenes` for what there is.
    """
    from gravel import checks

    output = pathlib.Path(output or f"{scene}.vtkhdf")
    if solver is not None:
        checks.choice("solver", solver, tuple(SOLVERS))
    scenes.module_of(scene)
    share_out = "auto" if domain is None else domain_from(domain)
    if ranks is not None and not launched():
        sys.exit(run_again(ranks, without_option(sys.argv[1:], "--ranks")))
    limits = {name: value for name, value in (("iterations", iterations), ("tolerance", tolerance)) if value is not None}
    given = {name: value for name, value in (("friction", friction), ("precision", precision), ("joints", joints)) if value is not None}
    changes = []
    if resume:
        simulation, setup = resumed(resume, scene, bodies, seed, threads, share_out, device)
        changes = change(simulation, resume, dt, solver, limits, given)
    else:
        seed = 0 if seed is None else seed
        setup = scenes.build(scene, bodies, seed)
        device = device or "cpu"
        options = {**setup.options, **({} if device == "cpu" else {"precision": "single"}), **given}
        own = options.pop("solver", None)  # what the scene says of the tolerance holds for any solver
        method = SOLVERS[solver or "gauss-seidel"](**{**({} if own is None else {"tolerance": own.tolerance}), **limits})
        simulation = Simulation(
            setup.scene, setup.dt if dt is None else dt, method, threads=threads, domain=share_out, device=device, **options
        )
        simulation.origin = {"scene": scene, "bodies": scenes.module_of(scene).BODIES if bodies is None else bodies, "seed": seed}
    say = speaker(simulation)
    several = f"{simulation.processes.size} processes x " if simulation.processes.size > 1 else ""
    say(f"device {simulation.device} ({processor()}), {several}threads {simulation.threads}, precision {simulation.precision}")
    joints = f"{len(simulation.mechanism)} joints, " if len(simulation.mechanism) else ""
    method = f"{simulation.solver.describe()}, friction {simulation.friction}"
    (movable,) = simulation.processes.total(simulation.movable.sum())
    say(f"{scene}: {int(movable)} bodies, {joints}dt {simulation.dt:g} s, {method}")
    if changes:
        say(f"changed at {simulation.time:g} s: {', '.join(changes)}")
    until = setup.time if duration is None else duration
    report = simulation.run(until, output, every, not quiet, setup.watchers(), checkpoint, checkpoint_every, contacts)
    finish(scene, simulation, setup, report, output, picture, until)


def speaker(simulation):
    """A function that prints, on the first process only."""
    return click.echo if simulation.processes.rank == 0 else lambda words: None


def resumed(path, scene, bodies, seed, threads, domain, device):
    """(the simulation of a checkpoint, the setup of its scene); refuses another scene than it was."""
    from gravel.io.checkpoint import origin_of

    asked, origin = {"scene": scene, "bodies": bodies, "seed": seed}, origin_of(path)
    for name, was in origin.items():
        if asked.get(name) not in (None, was):
            raise ValueError(f"{name} must be {was} to go on from {path}, not {asked[name]}")
    asked = {"seed": 0, **{name: value for name, value in asked.items() if value is not None}, **origin}
    setup = scenes.build(scene, asked.get("bodies"), asked["seed"])
    simulation = Simulation.load(path, threads, laws=setup.scene.mechanism.function_laws(), domain=domain, device=device)
    if simulation.count < len(setup.scene):
        raise ValueError(f"{path} holds {simulation.count} bodies, too few for this scene; give the same --bodies and --seed")
    return simulation, setup


def change(simulation, path, dt, solver, limits, given):
    """What was asked for is applied to a simulation that goes on; returns it in words. What a run keeps is refused where it is another."""
    for name, value in (("precision", simulation.precision), ("joints", simulation.joint_mode)):
        if given.get(name, value) != value:
            raise ValueError(f"{name} must be {value} to go on from {path}, not {given[name]}: a run keeps it")
    applied = []
    if dt is not None:
        applied.append(f"dt {dt:g} s (was {simulation.dt:g})")
        simulation.dt = dt
    if "friction" in given:
        applied.append(f"friction {given['friction']} (was {simulation.friction})")
        simulation.friction = given["friction"]
    if solver is not None or limits:
        was = simulation.solver
        kind = type(was) if solver is None else SOLVERS[solver]
        kept = {} if was.local or kind.local else {"iterations": was.iterations}  # FFD takes one, which is no limit for others
        base = was if kind is type(was) else kind(tolerance=was.tolerance, **kept)
        simulation.solver = dataclasses.replace(base, **limits)
        applied.append(f"{simulation.solver.describe()} (was {was.describe()})")
    return applied


def finish(scene, simulation, setup, report, output, with_picture, until):
    """Checks, picture and the last lines of a run."""
    say, first_process = speaker(simulation), simulation.processes.rank == 0
    rate, joints = (report.seconds - report.first_seconds) / max(report.steps - 1, 1), len(simulation.mechanism)
    first = f", the first of them {report.first_seconds:.1f} s" if report.first_seconds > 1.0 else ""
    ending = ", stopped by Ctrl-C" if report.interrupted else ""
    say(f"{report.steps} steps in {report.seconds:.1f} s{first} ({1e3 * rate:.2f} ms a step{' after it' if first else ''}){ending}")
    say(report.convergence())
    failed = False
    if report.interrupted or until < setup.time:
        say("checks of the physics: left out, the run is shorter than the scene's own")
    else:
        for check in setup.checks(simulation, report):
            failed |= not check.passed
            say(f"  {'ok    ' if check.passed else 'FAILED'} {check.name}: {check.detail}")
    if setup.curve is not None and first_process:
        setup.curve.write(output.with_suffix(".csv"))
        say(f"wrote {output.with_suffix('.csv')}: {', '.join(setup.curve.columns)}")
    if with_picture and first_process:
        draw(output)
    say(
        f"wrote {output}: {report.contacts} contacts, worst residual {report.residual:.3g} m/s, "
        f"worst penetration {report.max_penetration:.3g} m" + (f", joints open by {report.joint_violation:.2g} m at most" if joints else "")
    )
    if failed:
        sys.exit(3)


@main.command()
@click.argument("file")
@click.option("--base", default="floating", show_default=True, help="floating or fixed: the root link of a URDF file.")
@click.option("--hold", type=float, help="Stiffness of a servo on every joint that keeps its start, N m/rad or N/m (default: none).")
@click.option("--damping", type=float, help="Damping of these servos, N m s/rad or N s/m (default: 0.05 s times the stiffness).")
@click.option("--time", "duration", type=float, default=1.0, show_default=True, help="Simulated time in s; 0: only tell what was read.")
@click.option("--dt", type=float, default=1e-3, show_default=True, help="Step in s.")
@click.option("--output", "-o", help="Result file (default: FILE's name with .vtkhdf, in this folder).")
@click.option("--picture/--no-picture", default=True, help="Whether to leave a PNG of the last frame beside the result.")
@click.option("--outside-files", is_flag=True, help="Take meshes and includes from anywhere, not only from the robot's folder and package.")
def robot(file, base, hold, damping, duration, dt, output, picture, outside_files):
    """Read a robot from a URDF FILE, or from MJCF (.xml), put it on a floor and let it go.

    Prints its links and joints, and what was simplified or left out."""
    from gravel.robot_trial import describe, on_a_floor

    damping = 0.05 * hold if hold and damping is None else damping or 0.0
    scene, made = on_a_floor(file, base, hold, damping, outside_files)
    for line in describe(scene, made):
        click.echo(line)
    if duration <= 0:
        return
    simulation = Simulation(scene, dt, precision="double")
    result = pathlib.Path(output or f"{pathlib.Path(file).stem}.vtkhdf")
    start = simulation.positions[simulation.movable].mean(axis=0)
    report = simulation.run(duration, result)
    moved = simulation.positions[simulation.movable].mean(axis=0) - start
    click.echo(f"{report.steps} steps in {report.seconds:.1f} s; its bodies moved by ({', '.join(f'{x:.3f}' for x in moved)}) m on average")
    if picture:
        draw(result)
    click.echo(f"wrote {result}: {report.contacts} contacts, joints open by {report.joint_violation:.2g} m at most")


def draw(result):
    """A picture of the last frame, where the extra for it is installed."""
    try:
        from gravel.view.picture import picture

        click.echo(f"picture {picture(result, result.with_suffix('.png'))}")
    except RuntimeError as error:
        click.echo(f"no picture: {error}")


@main.command()
@click.argument("result")
@click.option("--output", "-o", help="PNG file (default: RESULT with .png).")
@click.option("--frame", type=int, default=-1, show_default=True, help="Which frame; negative ones count from the end.")
@click.option("--colour", "--color", default="material", show_default=True, help="material, speed, radius or rank (the process).")
def picture(result, output, frame, colour):
    """Draw a frame of a RESULT file as a PNG."""
    from gravel import checks
    from gravel.view import picture as view

    checks.choice("colour", colour, view.COLOURS)
    click.echo(f"wrote {view.picture(result, output or pathlib.Path(result).with_suffix('.png'), frame, colour)}")


@main.command()
@click.argument("result")
@click.option("--output", "-o", help="PNG file (default: RESULT with -plot.png or -joints.png).")
@click.option("--joints", is_flag=True, help="Plot the joints: positions, reactions, motors' efforts.")
@click.option("--measure", help="Plot a measure of each frame: stress, coordination, fabric, fraction, kinetic-energy, potential-energy.")
def plot(result, output, joints, measure):
    """Plot energy, contacts, residual and penetration of a RESULT file over time, its joints, or a measure of its frames; or plot a log of
    measures (RESULT ends with .csv)."""
    from gravel.view import plot as view

    path = pathlib.Path(result)
    if joints and measure:
        raise ValueError("--joints and --measure make two plots: give one of them")
    if path.suffix.lower() == ".csv":
        if joints or measure:
            raise ValueError(f"--joints and --measure go with a result file, but {path} is a log")
        draw, ending = view.plot_log, "-plot.png"
    elif measure:
        draw, ending = (lambda given, to: view.plot_measure(given, measure, to)), f"-{measure}.png"
    else:
        draw, ending = (view.plot_joints, "-joints.png") if joints else (view.plot, "-plot.png")
    click.echo(f"wrote {draw(result, output or path.with_name(path.stem + ending))}")


@main.command()
@click.argument("names", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
@click.option("--quick", is_flag=True, help="Small sizes, to see that it works.")
@click.option("--device", help="cpu, cuda (the first GPU), cuda:1 and so on, or warp:cpu (default: cpu).")
@click.option("--threads", type=int, help="Threads (default: OMP_NUM_THREADS, or all cores; scaling: 1 a process).")
@click.option("--steps", type=int, help="Steps that scaling measures (default: 50; of piles a fifth).")
@click.option("--latency", type=float, help="Of the network that scaling predicts for, us (default: 1.5, InfiniBand HDR100).")
@click.option("--bandwidth", type=float, help="Of that network for each process, GB/s (default: 0.4, HDR100 shared by 32).")
def bench(names, as_json, quick, device, threads, steps, latency, bandwidth):
    """Run benchmarks next to the papers' figures.

    NAMES: collide, contacts, ellipsoids, pairs, box-collider, solver, step, state, convergence, start, crowd, joints, packing, ffd,
    scaling (needs the extra mpi), kernels and device (need the extra gpu); default: all but the last three, on another device than the CPU
    collide, ellipsoids, pairs, step, state, convergence and device."""
    from gravel import bench as benchmarks

    benchmarks.run(names, quick, threads, as_json, device, steps=steps, latency=latency, bandwidth=bandwidth)


@main.command()
def info():
    """Show versions, cores and devices."""
    from importlib.metadata import version

    import h5py
    import numpy
    import scipy

    from gravel.engine import largest_thread_count, threading_layer

    click.echo(f"gravel {gravel.__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}")
    click.echo(f"numpy {numpy.__version__}, scipy {scipy.__version__}, numba {version('numba')}, h5py {h5py.__version__}")
    click.echo(f"device cpu: {processor()}, {largest_thread_count()} threads, threading layer {threading_layer()}")
    for name in gpu_devices():
        click.echo(f"device {name}")
    for module, extra in (("pyvista", "view"), ("matplotlib", "view"), ("mpi4py", "mpi")):
        try:
            click.echo(f"{module} {__import__(module).__version__}")
        except ImportError:
            click.echo(f'{module} not installed (pip install "gravel[{extra}]")')


def gpu_devices():
    """Devices through Warp, in words."""
    from gravel.engine import warp_devices

    try:
        return [f"{name}: {about}" for name, about in warp_devices().items()]
    except ModuleNotFoundError:
        return ['cuda: Warp is not installed (pip install "gravel[gpu]")']


def processor():
    """The name of the CPU."""
    try:
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()
