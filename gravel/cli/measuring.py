"""``gravel bench``, ``info``: benchmarks, and the versions and devices of this machine."""

import platform

import click

import gravel
from gravel.cli.group import main
from gravel.io.about import processor


@main.command()
@click.argument("names", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
@click.option("--quick", is_flag=True, help="Use small sizes, to check that the benchmark works.")
@click.option("--device", help="cpu, cuda (the first GPU), cuda:1 and so on, or warp:cpu (default: cpu).")
@click.option("--threads", type=int, help="Number of threads (default: OMP_NUM_THREADS, or all cores; scaling: 1 per process).")
@click.option("--steps", type=int, help="[scaling] Number of measured steps (default: 50; for piles a fifth).")
@click.option("--latency", type=float, help="[scaling] Network latency for the predictions, us (default: 1.5, InfiniBand HDR100).")
@click.option("--bandwidth", type=float, help="[scaling] Network bandwidth per process, GB/s (default: 0.4, HDR100 shared by 32).")
def bench(names, as_json, quick, device, threads, steps, latency, bandwidth):
    """Run benchmarks next to the papers' figures.

    NAMES: collide, contacts, ellipsoids, pairs, box-collider, solver, step, state, convergence, start, crowd, joints, packing, ffd,
    files (needs 5 GB of disk), scaling (needs the extra mpi), kernels and device (need the extra gpu), viewer (needs a browser), video
    (needs the extra view). The default is all but the last six; on a device other than the CPU it is collide, ellipsoids, pairs, step,
    state, convergence and device."""
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
    """The devices that Warp offers, one line each."""
    from gravel.engine import warp_devices

    try:
        return [f"{name}: {about}" for name, about in warp_devices().items()]
    except ModuleNotFoundError:
        return ['cuda: Warp is not installed (pip install "gravel[gpu]")']
