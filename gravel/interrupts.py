"""Ctrl-C comes at any moment; what belongs together is finished first."""

import signal
import threading


class HeldBack:
    """``with HeldBack():`` an interrupt that comes inside is raised at the end of the block, as ``KeyboardInterrupt``.

    Where somebody else handles SIGINT, or outside the main thread, which never sees one, nothing changes."""

    def __enter__(self):
        self.came = False
        in_main = threading.current_thread() is threading.main_thread()
        self.mine = in_main and signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if self.mine:
            signal.signal(signal.SIGINT, self._note)
        return self

    def _note(self, *_):
        self.came = True

    def __exit__(self, kind, error, trace):
        if self.mine:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if self.came and kind is None:
            raise KeyboardInterrupt
