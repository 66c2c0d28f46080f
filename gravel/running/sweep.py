"""Sweeps: one function over many values, each in a process of its own pool, side by side.

A simulation gives the same bits in any process and on any number of threads, so a sweep gives the numbers of a plain loop. Workers are
plain processes, each at the end of a pipe: whichever is idle gets the next value, and the end of a pipe tells that its worker has died.
"""

import multiprocessing
import os
import pickle
import signal
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from multiprocessing.connection import wait
from typing import Any

from tqdm import tqdm

from gravel import checks
from gravel.cautions import warn
from gravel.engine import available_cores, checked_threads
from gravel.errors import SweepError

GRACE = 3.0  # s that workers get to end by themselves: an interrupted run closes its files
PATIENCE = 1.0  # s between two looks whether workers are alive, beside waiting for their words
GUARD = 'a script that calls gv.sweep must do so under `if __name__ == "__main__":`, for its workers import it'


def sweep(
    function: Callable[[Any], Any],
    values: Iterable,
    processes: int | None = None,
    progress: bool = True,
    start: str | None = None,
    failures: str = "nan",
) -> list:
    """``[function(value) for value in values]``, on all cores: a list of the results in the order of the values.

    >>> def angle(friction):  # at the top of a file that can be imported
    ...     sim = gv.Simulation(heap(friction), dt=1e-3)
    ...     sim.run(until=2.0)
    ...     return slope(sim.positions)
    >>> if __name__ == "__main__":
    ...     angles = gv.sweep(angle, [0.1, 0.3, 0.5])

    ``processes``: how many at once (default: the cores of this machine). Each gets its share of the cores as ``OMP_NUM_THREADS``, which
    simulations follow unless they are told their ``threads``. A value is passed on as it is; a tuple is one value. ``progress``: a bar.
    ``start``: "spawn" (the default) starts fresh processes, which import the function and get the values by pickle; "fork" doubles this
    one, so that any function will do, a lambda too; where a simulation has run here before, forked ones use one thread each.

    Where the function raises, or its process dies, the others go on. ``failures``: "nan" gives a ``Failed`` in the place of the result, a
    NaN that knows its ``reason``, and a warning at the end; "raise" raises one ``SweepError``, after the others are finished. Its cause is
    what was raised, and it holds the results of the others (``results``). Where all values fail, it is raised in either case. Ctrl-C ends
    all processes.
    """
    checks.choice("failures", failures, ("nan", "raise"))
    if not callable(function):
        raise TypeError(f"function must be a function of one value, not {function!r}")
    values = list(values)
    cores = available_cores()
    processes = min(cores if processes is None else checks.count("processes", processes, minimum=1), len(values))
    start = "spawn" if start is None else checks.choice("start", start, ("spawn", "fork"))
    if start not in multiprocessing.get_all_start_methods():
        raise ValueError(f"start must be 'spawn' on this system, not {start!r}")
    _refuse_within_workers()
    if not values:
        return []
    threads = max(1, min(checked_threads(None), cores // processes))
    context = multiprocessing.get_context(start)
    tasks: Sequence
    if start == "fork":
        crew, tasks = _Crew(context, function, values, threads), range(len(values))
    else:
        crew, tasks = _Crew(context, _packed(function), None, threads), [_packed_value(value) for value in values]
    results, failed = _collect(crew, len(values), tasks, processes, progress)
    if failed and (failures == "raise" or len(failed) == len(values)):
        raise _error_of(failed, values, results) from failed[min(failed)]
    if failed:
        warn(f"{_words_of(failed, values)}; the result is NaN there")
    return [Failed(_reason(failed[k]), failed[k]) if k in failed else result for k, result in enumerate(results)]


class Failed(float):
    """The result of a value that failed: NaN. ``reason``: why, in words; ``error``: what was raised."""

    reason: str
    error: BaseException

    def __new__(cls, reason: str, error: BaseException):
        made = super().__new__(cls, "nan")
        made.reason, made.error = reason, error
        return made

    def __repr__(self) -> str:
        return f"nan (failed: {self.reason})"


def _refuse_within_workers():
    process = multiprocessing.current_process()
    if getattr(process, "_inheriting", False):  # the script that started this process is being imported by it
        raise RuntimeError(GUARD)
    if process.daemon:
        raise RuntimeError("gv.sweep must not be called within another sweep or a multiprocessing.Pool: their workers may not start others")


def _packed(function):
    try:
        return pickle.dumps(function)
    except Exception as error:
        raise _unknown(error) from error


def _unknown(error):
    """The error for a function that a fresh process cannot find."""
    return ValueError(
        f"function must stand at the top of a file that can be imported for start='spawn' ({error}): put it there, or use start='fork' "
        f"where the system has it"
    )


def _packed_value(value):
    try:
        return pickle.dumps(value)
    except Exception as error:
        raise ValueError(f"values must be such that pickle can pass them on for start='spawn', not {value!r:.80}: {error}") from error


def _collect(crew, count, tasks, processes, progress):
    """(results of so many values, what was raised for those that failed, by number), by as many workers; ``tasks``: what a worker is sent
    for each."""
    waiting, results = deque(range(count)), [None] * count
    failures: dict[int, BaseException] = {}
    try:
        with tqdm(total=count, disable=not progress, unit="value", dynamic_ncols=True) as bar:
            while waiting or crew.at_work():
                crew.fill(min(processes, len(waiting) + crew.at_work()))
                for worker in crew.idle():
                    if waiting and worker.give(waiting[0], tasks[waiting[0]]):
                        waiting.popleft()
                for number, good, answer in crew.answers():
                    (results if good else failures)[number] = answer
                    bar.update()
    finally:
        crew.dismiss()
    return results, failures


def _error_of(failures, values, results):
    return SweepError(_words_of(failures, values), results, failures)


def _words_of(failures, values):
    """Which value failed first and why, and how many did."""
    first = min(failures)
    more = f"; {len(failures)} of {len(values)} values failed" if len(failures) > 1 else ""
    return f"value {values[first]!r:.80} (number {first}) failed: {_reason(failures[first])}{more}"


def _reason(error):
    return str(error) if isinstance(error, ChildProcessError) else f"{type(error).__name__}: {error}"


class _Crew:
    """The workers of a sweep."""

    def __init__(self, context, function, values, threads):
        self.context, self.given, self.workers = context, (function, values, threads), []

    def fill(self, number):
        """Workers that have died are replaced, up to a number of workers."""
        self.workers = [worker for worker in self.workers if not worker.gone]
        while len(self.workers) < number:
            self.workers.append(_Worker(self.context, [worker.pipe for worker in self.workers], *self.given))

    def at_work(self):
        return sum(worker.task is not None for worker in self.workers)

    def idle(self):
        return [worker for worker in self.workers if worker.ready and worker.task is None and not worker.gone]

    def answers(self):
        """(number of a value, whether it went well, result or error) of those that are done, after a while at most."""
        wait([worker.pipe for worker in self.workers if not worker.gone], PATIENCE)
        for worker in self.workers:
            words = None if worker.gone else worker.listen()
            if words is not None and worker.task is not None:
                number, worker.task = worker.task, None
                yield number, *words

    def dismiss(self):
        """All end: idle workers at once, busy ones when an interrupt has reached them too, others by force."""
        for worker in self.workers:
            worker.pipe.close()
        try:
            until = time.monotonic() + GRACE
            for worker in self.workers:
                worker.process.join(max(until - time.monotonic(), 0.0))
        finally:
            for end in ("terminate", "kill"):
                for worker in self.workers:
                    if worker.process.is_alive():
                        getattr(worker.process, end)()
                        worker.process.join(GRACE)


class _Worker:
    """A process that works on one task after the other, seen from outside."""

    def __init__(self, context, others, function, values, threads):
        self.pipe, far_end = context.Pipe()
        inherited = [self.pipe, *others] if context.get_start_method() == "fork" else []
        self.process = context.Process(target=_work, args=(far_end, inherited, function, values, threads), daemon=True)
        self.process.start()
        far_end.close()
        self.ready, self.task, self.gone = False, None, False

    def give(self, number, task):
        """Set it to work on a value; returns whether it could be told."""
        try:
            self.pipe.send(task)
        except OSError:
            self.gone = True
            return False
        self.task = number
        return True

    def listen(self):
        """(whether it went well, result or error) if there is news of the task, or if the process has died; else None."""
        try:
            if not self.pipe.poll() and self.process.is_alive():
                return None
            good, answer = pickle.loads(self.pipe.recv_bytes()) if self.pipe.poll() else (False, self._death())
        except (EOFError, OSError):
            good, answer = False, self._death()
        if self.ready:
            return good, _told(answer)
        self._begin(good, _told(answer))
        return None

    def _begin(self, good, answer):
        """The first words: it has found the function, or it never will, and no other one would."""
        if isinstance(answer, ChildProcessError):
            raise SweepError(f"a worker could not start: {answer}; {GUARD}", [], {})
        if not good:
            raise _unknown(answer) from answer
        self.ready = True

    def _death(self):
        self.gone = True
        self.process.join(GRACE)
        code = self.process.exitcode
        if code is not None and code < 0:
            name = signal.Signals(-code).name
            hint = ", perhaps by the system for want of memory" if name == "SIGKILL" else ""
            return ChildProcessError(f"its process was killed by {name}{hint}")
        return ChildProcessError(f"its process ended by itself with exit code {code}")


def _told(answer):
    """What was raised in a worker, with the lines in which it was, as its cause."""
    if not isinstance(answer, _Raised):
        return answer
    try:
        error = pickle.loads(answer.packed)
    except Exception:  # it cannot be made again here
        error = RuntimeError(answer.words)
    error.__cause__ = _InWorker(f"\n{answer.lines}")
    return error


class _InWorker(Exception):
    """The lines of a worker's traceback."""


class _Raised:
    """An exception on its way from a worker."""

    def __init__(self, error):
        self.words = f"{type(error).__name__}: {error}"
        self.lines = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        try:
            self.packed = pickle.dumps(error)
        except Exception:
            self.packed = b""


# --- in the worker


def _work(pipe, inherited, function, values, threads):
    """Find the function, then do what comes until the pipe ends. ``inherited``: ends of pipes that are the parent's alone, or they would
    stay open without it. ``values``: those that tasks are numbers of; None: tasks are values, and they and the function are packed."""
    for end in inherited:
        end.close()
    os.environ["OMP_NUM_THREADS"] = str(threads)
    try:
        if values is None:
            try:
                function = pickle.loads(function)
            except Exception as error:
                _tell(pipe, False, _Raised(error))
                return
        _tell(pipe, True, None)
        while True:
            task = pipe.recv()
            _tell(pipe, *_outcome(function, task, values))
    except (EOFError, OSError, KeyboardInterrupt):  # nobody is there any more, or all shall end
        return


def _outcome(function, task, values):
    """(whether it went well, result or error)"""
    try:
        return True, function(pickle.loads(task) if values is None else values[task])
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit too: the worker has others to serve
        return False, _Raised(error)


def _tell(pipe, good, answer):
    try:
        content = pickle.dumps((good, answer))
    except Exception as error:
        content = pickle.dumps((False, _Raised(TypeError(f"the result cannot be passed back: {error}"))))
    pipe.send_bytes(content)
