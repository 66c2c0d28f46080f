"""What notebooks show of a scene, a simulation or a frame: a small picture and a line of facts.

In comes the object, out goes HTML with the picture in it; None where nothing can be drawn (no extra ``view``, no OpenGL, no bodies), so
that notebooks show the ``repr``. Looking at something must never stop anybody's work, so whatever goes wrong here is kept quiet.
"""

import base64
import html
import warnings
from typing import Any

SIZE = (520, 390)  # pixels
MOST = 20_000  # bodies; more would keep the notebook waiting


def html_of(source: Any, bodies: int) -> str | None:
    """A picture of a ``Scene``, ``Simulation`` or ``Frame`` of so many ``bodies``, with its ``repr`` below; None: it cannot be drawn."""
    if not 0 < bodies <= MOST:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            picture = base64.b64encode(_png_of(source)).decode()
    except Exception:  # of any kind, from any library: the repr says enough
        return None
    words = html.escape(repr(source))
    return f'<figure style="margin:0"><img alt="{words}" src="data:image/png;base64,{picture}"><figcaption>{words}</figcaption></figure>'


def _png_of(source: Any) -> bytes:
    from gravel.view.picture import picture

    return picture(source, size=SIZE)._repr_png_()
