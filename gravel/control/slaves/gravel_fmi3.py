"""A machine of gravel as an FMI 3.0 co-simulation unit: this script stands in the unit, with a scene beside it, and needs gravel in the
Python that the tool runs."""

from pythonfmu3 import Fmi3Slave
from pythonfmu3.enums import Fmi3Status
from pythonfmu3.fmi3slave import Fmi3StepResult


class GravelMachine(Fmi3Slave):
    """What the interface calls, handed to ``gravel.control.machine.Machine``."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        try:
            from gravel.control.machine import Machine
        except ImportError as error:
            words = "this unit holds a machine of gravel, which the Python that runs it cannot import; install gravel there"
            raise ImportError(f"{words} ({error})") from None
        self.machine = Machine(self.resources)
        self.modelName = self.machine.name

    def to_xml(self, model_options=None):
        from gravel import __version__
        from gravel.control.model_description import model_description

        return model_description(self.machine, 3, f"gravel {__version__}")

    def do_step(self, current_time, step_size):
        try:
            warnings = self.machine.step(current_time, step_size)
        except Exception as error:  # one that leaves this method would take the whole unit down
            self.log(str(error), Fmi3Status.error)
            return Fmi3StepResult(Fmi3Status.error)
        for words in warnings:
            self.log(words, Fmi3Status.warning)
        return Fmi3StepResult(Fmi3Status.ok)

    def get_float64(self, vrs):
        return self.machine.get(vrs)

    def get_int32(self, vrs):
        return [int(value) for value in self.machine.get(vrs)]

    def get_boolean(self, vrs):
        return [bool(value) for value in self.machine.get(vrs)]

    def set_float64(self, vrs, values):
        self.machine.put(vrs, values)

    def _get_fmu_state(self):
        return self.machine.state()

    def _set_fmu_state(self, state):
        self.machine.restore(state)

    @staticmethod
    def _fmu_state_to_bytes(state):
        return state.content

    @staticmethod
    def _fmu_state_from_bytes(content):
        from gravel.control.machine import state_from

        return state_from(content)
