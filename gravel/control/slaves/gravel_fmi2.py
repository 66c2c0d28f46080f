"""A machine of gravel as an FMI 2.0 co-simulation unit: this script stands in the unit, with a scene beside it, and needs gravel in the
Python that the tool runs."""

from pythonfmu import Fmi2Slave
from pythonfmu.enums import Fmi2Status


class GravelMachine(Fmi2Slave):
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
        self.log(words, Fmi2Status.error if is_error else Fmi2Status.warning)

    def to_xml(self, model_options=None):
        from gravel import __version__
        from gravel.control.model_description import model_description

        return model_description(self.unit.machine, 2, f"gravel {__version__}")

    def setup_experiment(self, start_time, stop_time=None, tolerance=None):
        self.unit.machine.origin = start_time

    def do_step(self, current_time, step_size):
        return self.unit.step(current_time, step_size)

    def get_real(self, vrs):
        return self.unit.get(vrs)

    def get_integer(self, vrs):
        return self.unit.get_whole(vrs)

    def get_boolean(self, vrs):
        return [value != 0 for value in self.unit.get_whole(vrs)]

    def set_real(self, vrs, values):
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
