"""Videos of results, off screen: every frame drawn by one plan, so that the camera, the colours and the walls stay as they are.

In: a result file. Out: an mp4 file (H.264, by the ffmpeg that imageio-ffmpeg brings) or a gif (by Pillow). The file is written under
another name and gets its own at the end; what is left off is removed.
"""

from pathlib import Path

import numpy as np
from tqdm import tqdm

from gravel import checks
from gravel.io.outputs import replaced
from gravel.io.result import open_result
from gravel.io.vtkhdf import check_ending, check_writable
from gravel.view import need
from gravel.view.look import Look, size_of
from gravel.view.picture import Painter
from gravel.view.subject import shown

ENDINGS = (".mp4", ".gif")
PART = ".part"  # in the name of a file that is being written
SAMPLES = 5  # frames, from the first to the last, that camera and colours are made for
FINE = 9  # quality from which each pixel is drawn as four
BEST = 10
COLOURED = 24  # of 255, between the largest and the least of red, green and blue: less is grey


def video(result, output, fps=25.0, start=None, stop=None, every=1, turn=0.0, quality=7, progress=False, **look):
    """A video of the frames of a ``result`` (its path, or an open ``Result``), written to ``output``, .mp4 or .gif; returns the path.

    ``fps``: frames in a second of the video. ``start``, ``stop``: simulated times in s between which frames are taken (default: all);
    ``every``: only each so many-th of them. ``turn``: degrees that the camera goes around the scene. ``quality``: 1 to 10, the best.
    ``progress``: a bar on stderr. ``look``: the options of ``gv.picture``, colour, size, camera and so on. A size that is odd is made even.
    """
    check_ending("output", output, ENDINGS)
    output = check_writable(output, PART)
    fps, turn = checks.number("fps", fps, above=0.0, maximum=240.0), checks.number("turn", turn)
    quality = checks.count("quality", quality, minimum=1)
    if quality > BEST:
        raise ValueError(f"quality must be from 1 to {BEST}, not {quality}")
    if output.suffix.lower() == ".mp4":
        look["size"] = tuple(n + n % 2 for n in size_of(look.get("size", Look.size)))
    look = Look(**look)
    path = getattr(result, "path", result)
    frames = chosen_frames(path, start, stop, every)
    some = sorted({frames[k] for k in np.linspace(0, len(frames) - 1, SAMPLES).astype(int)})
    samples = [shown(path, frame, look.needs_contacts) for frame in some]
    with Painter(samples, look, 2 if quality >= FINE else 1, turn) as painter, replaced(output) as part:
        drawn = _drawn(painter, path, frames, turn, progress)
        if output.suffix.lower() == ".mp4":
            write_mp4(part, drawn, look.size, fps, quality)
        else:
            write_gif(part, drawn, [painter.pixels(sample) for sample in samples], fps, quality)
    return output


def chosen_frames(path, start, stop, every):
    """The numbers of frames that were asked for; refuses fewer than two."""
    every = checks.count("every", every, minimum=1)
    with open_result(path) as result:
        times = result.times
    first, last = (checks.number(name, end) if end is not None else end for name, end in (("from", start), ("to", stop)))
    hair = 1e-9 * max(np.abs(times).max(initial=0), 1e-12)
    kept = np.ones(len(times), bool)
    if first is not None:
        kept &= times >= first - hair
    if last is not None:
        kept &= times <= last + hair
    frames = np.flatnonzero(kept)[::every].tolist()
    if len(frames) < 2:
        have = f"{len(times)} from {times[0]:g} to {times[-1]:g} s" if len(times) else "none"
        raise ValueError(f"a video needs two frames at least, but from, to and every leave {len(frames)} of {path}, which has {have}")
    return frames


def _drawn(painter, path, frames, turn, progress):
    """The pixels of all frames, one after the other."""
    for k, frame in enumerate(tqdm(frames, "video", unit="frame", disable=not progress)):
        camera = painter.plan.camera.turned(turn * k / len(frames)) if turn else None
        yield painter.pixels(shown(path, frame, painter.look.needs_contacts), camera)


def write_mp4(path, images, size, fps, quality):
    """H.264 in the form that browsers and slides play."""
    ffmpeg = need("imageio_ffmpeg")
    writer = ffmpeg.write_frames(str(path), size, fps=fps, quality=quality, macro_block_size=2, ffmpeg_log_level="error")
    writer.send(None)
    try:
        for pixels in images:
            writer.send(np.ascontiguousarray(pixels))
    finally:
        writer.close()
    if not Path(path).exists() or not Path(path).stat().st_size:
        raise OSError(f"output {path} could not be written: ffmpeg left nothing")


def write_gif(path, images, samples, fps, quality):
    """An endless gif; all frames share the colours that suit ``samples``, as few as the quality says. A colour counts as often as it is not
    paper: what is white or grey would take nearly all of them, and the scale would lose its own."""
    image = need("PIL.Image")
    pixels = np.concatenate([sample.reshape(-1, 3) for sample in samples])
    coloured = pixels[np.ptp(pixels.astype(int), axis=1) > COLOURED]
    grey = pixels[:: max(len(pixels) // max(len(coloured) // 2, 256), 1)]
    learnt = np.concatenate([coloured, grey])[None]
    colours = image.fromarray(learnt).quantize(int(round(256 * quality / BEST)), image.Quantize.FASTOCTREE)
    frames = (image.fromarray(pixels).quantize(palette=colours, dither=image.Dither.FLOYDSTEINBERG) for pixels in images)
    next(frames).save(path, save_all=True, append_images=frames, duration=max(round(100 / fps), 2) * 10, loop=0)
