"""``gravel view``, ``picture``, ``video``: show results. Plots and reports: ``gravel.cli.plotting``."""

import contextlib
import pathlib
import threading

import click

from gravel.cli.group import main

COLOUR = "Colour by material, speed, radius, contacts, energy, body or rank (the process); auto chooses by the scene."
CAMERA = "auto, front, back, left, right, top, iso, or px,py,pz,fx,fy,fz[,ux,uy,uz[,angle]]: position, target in m, up vector, degrees."


def look_options(command):
    """The options common to pictures and videos."""
    for option in reversed(
        (
            click.option("--colour", "--color", default="auto", show_default=True, help=COLOUR),
            click.option("--limits", help="Ends of the colour scale, low,high (default: from the data shown)."),
            click.option("--size", default="1200x900", show_default=True, help="Width and height in pixels."),
            click.option("--camera", default="auto", show_default=True, help=CAMERA),
            click.option("--clip", help="nx,ny,nz,offset: hide bodies whose centre x has n·x < offset (m)."),
            click.option("--forces", is_flag=True, help="Draw contacts as rods whose width is their force (needs a run with --contacts)."),
            click.option("--background", default="white", show_default=True, help="Background colour, such as black or #f4f4f0."),
            click.option("--occlusion/--no-occlusion", default=True, help="Ambient occlusion: darken corners that little light reaches."),
            click.option("--caption/--no-caption", default=True, help="Draw time, scale bar and colour bar."),
        )
    ):
        command = option(command)
    return command


@main.command()
@click.argument("result")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to serve; any but this machine's own requires a token.")
@click.option("--port", type=int, default=0, help="Port to serve (default: any free port).")
@click.option("--browser/--no-browser", default=True, help="Open a browser.")
@click.option("--save", "output", help="Write the viewer with its frames into one HTML file, which opens without gravel, and exit.")
@click.option("--every", type=int, default=1, show_default=True, help="With --save: take every N-th frame.")
@click.option("--bodies", type=int, help="Show at most so many bodies (default: 500000): of more grains an even share, drawn larger.")
def view(result, host, port, browser, output, every, bodies):
    """Open a RESULT file in the browser: play, rotate, clip, pick bodies, show forces."""
    from gravel import checks
    from gravel.view.viewer.show import view as show
    from gravel.view.viewer.thinning import MOST

    if every != 1 and output is None:
        raise ValueError(f"--every {every} goes with --save; the page that is served has all frames")
    checks.count("every", every, minimum=1)
    page = show(result, False, host, port, MOST if bodies is None else bodies)
    if page.source.share < 1:
        share, larger = page.source.share, page.source.share ** (-1 / 3)
        click.echo(f"{100 * share:.3g} % of the grains are shown, drawn {larger:.2g} times as large; --bodies N shows up to N bodies")
    if output is None:
        return serve(page, browser)
    with page:
        saved = page.save(output, slice(None, None, every), progress=True)
    click.echo(f"wrote {saved}: {saved.stat().st_size / 1e6:.1f} MB; any browser opens it, without gravel")


def serve(page, browser):
    """Print the address of a page, open it, and wait for Ctrl-C."""
    from gravel.view.viewer.server import is_local

    try:
        click.echo(f"viewer at {page.url} (Ctrl-C stops it)")
        if not is_local(page.server.host):
            click.echo("anyone who has this address can open the page; the traffic is not encrypted")
        if browser and not page.open():
            click.echo("no browser was found: open this address in a browser")
        threading.Event().wait()
    except KeyboardInterrupt:
        click.echo("stopped")
    finally:
        with contextlib.suppress(KeyboardInterrupt):  # a second one, while it closes
            page.close()


@main.command()
@click.argument("result")
@click.option("--output", "-o", help="PNG, JPEG or WebP file, by its ending (default: RESULT with .png).")
@click.option("--frame", type=int, default=-1, show_default=True, help="Frame number; negative numbers count from the end.")
@look_options
def picture(result, output, frame, **look):
    """Draw a frame of a RESULT file."""
    from gravel.view import picture as view

    click.echo(f"wrote {view.picture(result, output or pathlib.Path(result).with_suffix('.png'), frame, **look)}")


@main.command()
@click.argument("result")
@click.option("--output", "-o", help="mp4 or gif file (default: RESULT with .mp4).")
@click.option("--fps", type=float, default=25.0, show_default=True, help="Frames per second of the video.")
@click.option("--from", "start", type=float, help="Simulated time of the first frame, s (default: the start of the result).")
@click.option("--to", "stop", type=float, help="Simulated time of the last frame, s (default: the end of the result).")
@click.option("--every", type=int, default=1, show_default=True, help="Take every N-th frame.")
@click.option("--turn", type=float, default=0.0, show_default=True, help="Angle in degrees by which the camera moves around the scene.")
@click.option("--quality", type=int, default=7, show_default=True, help="1 to 10; 9 and 10 use 4x supersampling.")
@click.option("--quiet", is_flag=True, help="Hide the progress bar.")
@look_options
def video(result, output, fps, start, stop, every, turn, quality, quiet, **look):
    """Draw all frames of a RESULT file as a video, with constant camera, colour scale and walls."""
    from gravel.view import video as view

    output = output or pathlib.Path(result).with_suffix(".mp4")
    click.echo(f"wrote {view.video(result, output, fps, start, stop, every, turn, quality, not quiet, **look)}")
