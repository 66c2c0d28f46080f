"""The viewer, from Python: ``gv.view(result)`` and ``sim.view()`` open a page in the browser, or show it inline in a notebook."""

import html
import os
import pathlib
import webbrowser
from collections.abc import Sequence

from gravel.view.viewer.server import Server
from gravel.view.viewer.sources import Live, Recorded
from gravel.view.viewer.thinning import MOST

HEIGHT = 600  # px, in a notebook


class View:
    """A page that shows a result or a simulation; ``url`` is where it is, ``close()`` ends it. In a notebook it shows itself."""

    def __init__(self, source: Live | Recorded, host: str = "127.0.0.1", port: int = 0):
        self.source = source
        self.when_closed = lambda: None
        try:
            self.server = Server(source, host, port)
        except BaseException:
            source.close()
            raise

    @property
    def url(self) -> str:
        """The address of the page."""
        return self.server.url

    def open(self) -> bool:
        """Open the page in a browser; False where there is none."""
        return webbrowser.open(self.url)

    def save(self, path: str | os.PathLike, frames: int | slice | Sequence[int] | None = None, progress: bool = False) -> pathlib.Path:
        """Write it as one HTML file that any browser opens from disk, without gravel; returns its path. ``frames``: a number, several, or
        a slice; None: all. Of a simulation, its present state."""
        from gravel.view.viewer.saved import save_page

        if isinstance(self.source, Live):
            self.source.renew()
        return save_page(self.source, path, frames, progress)

    def close(self) -> None:
        """Stop serving the page."""
        self.server.close()
        self.when_closed()
        self.when_closed = lambda: None

    def __repr__(self) -> str:
        return f"View({self.url!r})"

    def _repr_html_(self) -> str:
        self.server.framed = True
        return f'<iframe src="{html.escape(self.url, quote=True)}" width="100%" height="{HEIGHT}" style="border: 1px solid #ccc"></iframe>'

    def __enter__(self) -> "View":
        return self

    def __exit__(self, *_) -> None:
        self.close()


def view(result: str | os.PathLike, browser: bool | None = None, host: str = "127.0.0.1", port: int = 0, bodies: int = MOST) -> View:
    """Show a result file in a page. ``browser``: whether to open one (None: not in a notebook, where the page is shown inline). ``host``:
    who can reach it, by default this machine alone; ``port`` 0: any that is free. ``bodies``: how many are shown at most; of more grains
    an even share is shown, larger than they are, and the page says which."""
    return opened(View(Recorded(result, bodies), host, port), browser)


def view_of(simulation, browser=None, host="127.0.0.1", port=0, title="simulation", result=None, bodies=MOST):
    """Show a simulation in a page, which follows it as it steps, and may pause it."""
    return opened(View(Live(simulation, title, result, bodies), host, port), browser)


def opened(made, browser):
    if browser is None:
        browser = not in_notebook()
    if browser and not made.open():
        print(f"no browser was found: open {made.url} in one")
    return made


def in_notebook():
    """Whether this is a notebook, which shows pages itself."""
    try:
        from IPython import get_ipython
    except ImportError:
        return False
    return type(get_ipython()).__name__ == "ZMQInteractiveShell"
