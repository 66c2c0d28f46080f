"""Detection in a step: contacts where the step looks, with all sleepers awake that something touches."""

from collections.abc import Callable

from gravel.engine import CellTooSmall, Detection, Driven, Engine, Lap

Refusal = Callable[[str, int], Exception]  # (words, body) -> the error for what a step cannot take


def detect_awake(engine: Engine, driven: Driven | None, lap: Lap, refusal: Refusal) -> Detection:
    """Contacts with every sleeper awake that a body which is awake touches; it may touch others that sleep."""
    found = _detect(engine, driven, lap, refusal)
    while len(touched := engine.touched_sleepers()):
        engine.wake(touched)
        found = _detect(engine, driven, lap, refusal)
    return found


def _detect(engine, driven, lap, refusal):
    engine.predict_poses()
    if driven is not None:
        engine.set_motion(driven)
    lap("motion")
    try:
        return engine.detect(lap)
    except CellTooSmall as error:
        raise refusal(str(error), error.body) from None
