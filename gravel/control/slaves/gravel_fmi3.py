"""A machine of gravel as an FMI 3.0 co-simulation unit: this script stands in the unit, with a scene beside it, and needs gravel in the
Python that the tool runs."""

from pythonfmu3 import Fmi3Slave
from pythonfmu3.enums import Fmi3Status
from pythonfmu3.fmi3slave import Fmi3StepResult


class GravelMachine(Fmi3Slave):
    """What the interface calls, handed to ``gravel.control.machine.Unit``."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        try:
            from gravel.control.machine import Unit
        except ImportError as error:
            words = "this unit holds a machine of gravel, which the Python that runs it cannot import; install gravel there"
            raise ImportError(f"{words} ({error})") from None
        self.unit = Unit(self.resources, self.tell)
        self.modelName = self.unit.machine.name

    def tell(self, words, is_error):
        self.log(words, Fmi3Status.error if is_error else Fmi3Status.warning)

    def to_xml(self, model_options=None):
        from gravel import __version__
        from gravel.control.model_description import model_description

        return model_description(self.unit.machine, 3, f"gravel {__version__}")

    def do_step(self, current_time, step_size):
        return Fmi3StepResult(Fmi3Status.ok if self.unit.step(current_time, step_size) else Fmi3Status.error)

    def get_float64(self, vrs):
        return self.unit.get(vrs)

    def get_int32(self, vrs):
        return self.unit.get_whole(vrs)

    def get_boolean(self, vrs):
        return [value != 0 for value in self.unit.get_whole(vrs)]

    def set_float64(self, vrs, values):
        self.unit.put(vrs, values)

    def _get_fmu_state(self):
        return self.unit.state()

    def _set_fmu_state(self, state):
        self.unit.restore(state)

    @staticmethod
    def _fmu_state_to_bytes(state):
        return state if isinstance(state, bytes) else b"" if state is None else state.content

    @staticmethod
    def _fmu_state_from_bytes(content):
        return bytes(content)  # read where it is taken up, which can refuse it
