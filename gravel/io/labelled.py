"""Bodies of many frames as one labelled array: ``Result.to_xarray``.

In come frames of a result, out goes an xarray Dataset with the dimensions time, body and axis. Bodies come and go: a body that is not
there in a frame is NaN in it. Frames are read one by one, and what would not fit into the memory allowed is refused beforehand.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gravel import checks
from gravel.printing.tables import need

if TYPE_CHECKING:
    import xarray

    from gravel.io.result import Result

QUANTITIES = {  # name -> unit, what it is, name of its last dimension
    "positions": ("m", "position", "axis"),
    "quaternions": ("", "orientation, w x y z", "component"),
    "velocities": ("m/s", "velocity", "axis"),
    "angular_velocities": ("rad/s", "angular velocity, world frame", "axis"),
    "radii": ("m", "radius of the ball around the body", None),
    "masses": ("kg", "mass, infinite for bodies that forces cannot move", None),
    "inertias": ("kg m2", "principal moments of inertia", "axis"),
    "materials": ("", "number of the material", None),
    "ranks": ("", "process that wrote the body", None),
}
LABELS = {"axis": list("xyz"), "component": list("wxyz")}


def dataset_of(result: "Result", names: Sequence[str], frames: Any, memory: float) -> "xarray.Dataset":
    """The Dataset of some ``names`` of QUANTITIES; see ``Result.to_xarray``."""
    xarray = need("xarray", "to_xarray")
    names = [checks.choice("name", name, tuple(QUANTITIES)) for name in names or ("positions", "velocities")]
    allowed = checks.number("memory", memory, above=0.0)
    chosen = _chosen(result, frames)
    if len(chosen):
        _check_room(result, len(chosen), max(len(result.frame(chosen[k])) for k in (0, -1)), names, allowed)
    ids, values = _read(result, chosen, names)
    bodies = np.unique(np.concatenate([np.empty(0, np.int64), *ids]))
    _check_room(result, len(chosen), len(bodies), names, allowed)
    rows = [np.searchsorted(bodies, some) for some in ids]
    data = {name: _variable(name, values[name], rows, len(bodies)) for name in names}
    coordinates = {"time": ("time", result.times[chosen], {"units": "s"}), "frame": ("time", chosen), "body": bodies}
    used = {QUANTITIES[name][2] for name in names} - {None}
    return xarray.Dataset(data, {**coordinates, **{name: LABELS[name] for name in LABELS if name in used}}, {"source": result.path})


def _chosen(result: "Result", frames: Any) -> np.ndarray:
    """The numbers of the frames that are asked for."""
    every = np.arange(len(result))
    if frames is None:
        return every
    if isinstance(frames, slice):
        return every[frames]
    if not isinstance(frames, (Sequence, np.ndarray, range)):
        raise TypeError(f"frames must be a slice or a list of frames, not {frames!r:.80}")
    return np.array([result.place(index) for index in frames], np.int64)


def _check_room(result: "Result", frames: int, bodies: int, names: Sequence[str], allowed: float) -> None:
    needed = 8e-9 * frames * bodies * sum(_width(name) for name in names)
    if needed > allowed:
        raise ValueError(
            f"memory must be at least {needed:.3g} GB for {', '.join(names)} of {bodies} bodies in {frames} frames of {result.path}, not "
            f"{allowed:g}: take fewer frames (frames=slice(0, None, 10)) or names, or allow more (memory=)"
        )


def _read(result: "Result", chosen: np.ndarray, names: Sequence[str]) -> tuple[list[np.ndarray], dict[str, list[np.ndarray]]]:
    ids: list[np.ndarray] = []
    values: dict[str, list[np.ndarray]] = {name: [] for name in names}
    for index in chosen:
        frame = result.frame(int(index))
        ids.append(frame.ids)
        for name in names:
            values[name].append(getattr(frame, name))
    return ids, values


def _variable(name: str, values: list[np.ndarray], rows: list[np.ndarray], bodies: int) -> tuple:
    """(dimensions, values, attributes), as xarray takes them; the frames' own arrays are let go one by one."""
    unit, words, last = QUANTITIES[name]
    width = (_width(name),) if last else ()
    dense = np.full((len(values), bodies, *width), np.nan)
    for k, some in enumerate(rows):
        dense[k, some], values[k] = values[k], np.empty(0)
    attributes = {"long_name": words, **({"units": unit} if unit else {})}
    return ("time", "body", *((last,) if last else ())), dense, attributes


def _width(name: str) -> int:
    last = QUANTITIES[name][2]
    return len(LABELS[last]) if last else 1
