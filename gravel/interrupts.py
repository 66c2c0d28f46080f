"""Defer Ctrl-C until a critical section has finished."""

import signal
import threading

try:  # the functions behind those of ``signal``, which make enums of all they return: ten times as quick, in every step
    from _signal import getsignal as handler_of
    from _signal import signal as set_handler
except ImportError:
    from signal import getsignal as handler_of
    from signal import signal as set_handler


class DeferInterrupt:
    """``with DeferInterrupt():`` an interrupt that comes inside is raised at the end of the block, as ``KeyboardInterrupt``.

    Where somebody else handles SIGINT, or outside the main thread, which never sees one, nothing changes."""

    def __enter__(self):
        self.came = False
        in_main = threading.current_thread() is threading.main_thread()
        self.mine = in_main and handler_of(signal.SIGINT) is signal.default_int_handler
        if self.mine:
            set_handler(signal.SIGINT, self._note)
        return self

    def _note(self, *_):
        self.came = True

    def __exit__(self, kind, error, trace):
        if self.mine:
            set_handler(signal.SIGINT, signal.default_int_handler)
        if self.came and kind is None:
            raise KeyboardInterrupt
