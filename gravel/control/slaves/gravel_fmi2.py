"""A machine of gravel as an FMI 2.0 co-simulation unit: this script stands in the unit, with a scene beside it, and needs gravel in the
Python that the tool runs."""

from pythonfmu import Fmi2Slave
from pythonfmu.enums import Fmi2Status


class GravelMachine(Fmi2Slave):
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

        return model_description(self.machine, 2, f"gravel {__version__}")

    def setup_experiment(self, start_time, stop_time=None, tolerance=None):
        self.machine.origin = start_time

    def do_step(self, current_time, step_size):
        try:
            warnings = self.machine.step(current_time, step_size)
        except Exception as error:  # one that leaves this method would take the whole unit down
            self.log(str(error), Fmi2Status.error)
            return False
        for words in warnings:
            self.log(words, Fmi2Status.warning)
        return True

    def get_real(self, vrs):
        return self.machine.get(vrs)

    def get_integer(self, vrs):
        return [int(value) for value in self.machine.get(vrs)]

    def get_boolean(self, vrs):
        return [bool(value) for value in self.machine.get(vrs)]

    def set_real(self, vrs, values):
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
