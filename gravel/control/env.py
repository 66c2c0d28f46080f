"""``gv.env``: machines as gymnasium environments, for training controllers.

``make`` takes a machine (``gravel.control.sources``) and names of its variables: those that an action sets, and those that an observation
is made of. Each step of the environment is ``frame_skip`` steps of the simulation; ``reset`` takes up the start, bit for bit.

    env = gv.env.make("slider-crank", {"motor.crank.torque": (-20, 20)}, ["joint.crank.angle_speed"], reward=...)

or, by the registry of gymnasium, ``gymnasium.make("gravel.control.env:gravel/Machine-v0", scene="slider-crank", ...)``.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from gravel import checks
from gravel.control.plant import Plant
from gravel.control.sources import machine_of
from gravel.control.variables import Variable, Variables
from gravel.errors import SimulationError

try:
    import gymnasium
except ImportError:  # ``make`` says how to get it; the module can be looked at without
    gymnasium = None  # type: ignore[assignment]

__all__ = ["MachineEnv", "make", "variables"]

ID = "gravel/Machine-v0"
Base: Any = object if gymnasium is None else gymnasium.Env
Observed = str | tuple[str, Callable[[Any], Any]]  # the name of a variable, or (name, function of the simulation)


class MachineEnv(Base):
    """A machine as a ``gymnasium.Env``; ``make`` makes it.

    ``action_space`` and ``observation_space`` are boxes; ``action_names`` and ``observation_names`` say what each of their numbers is.
    ``dt`` s lies between two actions. Rewards and ends are functions of the environment, which may ask it for ``simulation``, ``action``
    and ``observation`` (arrays), ``previous`` (the observation before), ``time`` s since the start, and ``env["joint.crank.angle"]``, any
    variable by name.
    """

    def __init__(
        self,
        plant: Plant,
        table: Variables,
        actions: list[tuple[Variable, float, float]],
        observed: list[Variable],
        functions: Mapping[str, Callable | None],
        frame_skip: int,
        duration: float | None,
        normalise: bool,
        render_mode: str | None,
        picture: Mapping[str, Any],
    ):
        self.plant, self.variables, self.frame_skip, self.duration = plant, table, frame_skip, duration
        self.render_mode, self.normalise = render_mode, normalise
        self.dt = frame_skip * plant.simulation.dt
        self.metadata = {"render_modes": ["rgb_array"], "render_fps": max(1, round(1 / self.dt))}
        self._inputs, self._observed, self._functions = [variable for variable, *_ in actions], observed, functions
        self._picture: dict[str, Any] = {"size": (640, 480), **picture}
        self._known: dict[str, Variable] = {}
        numbers = [(name, low, high) for variable, low, high in actions for name in variable.names]
        self.action_names = [name for name, *_ in numbers]
        self._low, self._high = (np.array([number[k] for number in numbers], float) for k in (1, 2))
        ends = (-np.ones(len(numbers)), np.ones(len(numbers))) if normalise else (self._low, self._high)
        self.action_space = gymnasium.spaces.Box(ends[0].astype(np.float32), ends[1].astype(np.float32), dtype=np.float32)
        for variable in self._inputs:  # motors that were functions are numbers from now on
            variable.write(plant.simulation, variable.value(plant.reading()))  # type: ignore[misc]
        self._start = plant.snapshot()
        self._begin()
        self.observation_names = [name for variable in observed for name in variable.names]
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (len(self.observation_names),), np.float64)

    @property
    def simulation(self) -> Any:
        """The ``Simulation`` under way; another object after each ``reset``."""
        return self.plant.simulation

    @property
    def time(self) -> float:
        """s since the start of the episode."""
        return self.simulation.time - self._began

    def __getitem__(self, name: str) -> Any:
        """The value of an output by its name: a number, or an array of its components."""
        if name not in self._known:
            found = self.variables.select("outputs", name)
            if len(found) != 1:
                raise ValueError(f"{name!r} stands for {len(found)} variables; name one of them")
            self._known[name] = found[0]
        variable = self._known[name]
        value = variable.value(self.plant.reading())
        return value if variable.components else float(value[0])

    # --- what gymnasium asks for
    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[np.ndarray, dict]:
        """Take up the start; ``randomise`` changes it, by random numbers that ``seed`` decides. Returns (observation, info)."""
        super().reset(seed=seed)
        self.plant.restore(self._start)
        randomise = self._functions["randomise"]
        if randomise is not None:
            randomise(self.simulation, self.np_random)
        self._begin()
        return self.observation.copy(), {"time": 0.0}

    def _begin(self):
        """An episode begins with the simulation as it is."""
        self._began = self.simulation.time
        self.action = self.plant.read(self._inputs)
        self.observation = self.previous = self._observe()

    def step(self, action: Any) -> tuple[np.ndarray, float, bool, bool, dict]:
        """Set the inputs, and let ``dt`` s pass. Returns (observation, reward, terminated, truncated, info). A step that the simulation
        cannot take ends the episode; ``info["error"]`` says why."""
        self._act(action)
        info: dict[str, Any] = {}
        try:
            self.plant.advance(self.frame_skip)
        except SimulationError as error:
            info["error"] = str(error)
        self.previous, self.observation = self.observation, self._observe()
        info.update(time=self.time, converged=self.plant.progress.converged)
        ends, reward = self._functions["terminated"], self._functions["reward"]
        terminated = "error" in info or (ends is not None and bool(ends(self)))
        truncated = self.duration is not None and self.time >= self.duration - 0.5 * self.simulation.dt
        gain = 0.0 if reward is None else float(reward(self))
        return self.observation.copy(), gain, terminated, truncated, info

    def _act(self, action):
        given = checks.array("action", action, self.action_space.shape)
        if self.normalise:
            given = self._low + 0.5 * (np.clip(given, -1, 1) + 1) * (self._high - self._low)
        self.action = np.clip(given, self._low, self._high)
        first = 0
        for variable in self._inputs:
            variable.write(self.simulation, self.action[first : first + variable.size])  # type: ignore[misc]
            first += variable.size

    def _observe(self):
        return self.plant.read(self._observed)

    def render(self) -> np.ndarray | None:
        """(height, width, 3) bytes, a picture of the machine as it is, if ``render_mode`` is "rgb_array". The camera stays."""
        if self.render_mode is None:
            return None
        from gravel.view.picture import picture

        image = picture(self.simulation, **self._picture)
        self._picture["camera"] = str(image.camera)
        return image.pixels


def make(
    scene: Any,
    actions: Iterable[str] | Mapping[str, tuple[float, float] | None],
    observations: Iterable[Observed],
    *,
    reward: Callable[[MachineEnv], float] | None = None,
    terminated: Callable[[MachineEnv], bool] | None = None,
    randomise: Callable[[Any, np.random.Generator], None] | None = None,
    frame_skip: int = 10,
    duration: float | None = None,
    normalise: bool = True,
    render_mode: str | None = None,
    picture: Mapping[str, Any] | None = None,
    **options: Any,
) -> MachineEnv:
    """A machine as an environment of gymnasium (extra env), for training controllers.

    - ``scene``: the name of a built-in scene, a scene file (.yaml), a Scene (with ``dt``), a Simulation, whose present state is the start,
      or what ``load_scene_file`` returns
    - ``actions``: the inputs that an action sets; a dict gives their ranges, {"motor.crank.speed": (-10, 10)}. Without, or with None, the
      range is that of the joint's limits; where there is none, it must be given
    - ``observations``: the outputs that an observation is made of, in this order; a pair (name, function of the simulation) is an output of
      your own, a number or an array of always the same size
    - ``reward`` and ``terminated``: functions of the environment, called after each step (``MachineEnv``); None: 0, and never
    - ``randomise``: called by ``reset`` with the simulation and a numpy ``Generator``, to change the start: masses, places, gravity
    - ``frame_skip``: steps of the simulation that an action holds
    - ``duration`` s after which an episode is truncated
    - ``normalise``: whether actions go from -1 to 1, as trainers like them, and not from low to high in SI units
    - ``render_mode``: "rgb_array" or None; ``picture``: arguments of ``gv.picture`` for it, such as size and camera
    - ``options``: ``dt`` s, ``bodies`` and ``seed`` of the scene, ``threads`` (1), ``observers`` called after steps,
      ``joint_names``, a dict of names and ids

    ``gv.env.variables(scene)`` lists what there is.
    """
    if gymnasium is None:
        raise RuntimeError('this needs gymnasium, which is not installed: pip install "gravel[env]"')
    for name, function in (("reward", reward), ("terminated", terminated), ("randomise", randomise)):
        if function is not None and not callable(function):
            raise TypeError(f"{name} must be a function, not {function!r:.80}")
    frame_skip = checks.count("frame_skip", frame_skip, minimum=1)
    duration = None if duration is None else checks.number("duration", duration, above=0.0)
    if render_mode is not None:
        checks.choice("render_mode", render_mode, ("rgb_array",))
    source = machine_of(scene, **{"threads": 1, **options})  # environments run beside each other, each in a process of its own
    return MachineEnv(
        source.plant,
        source.variables,
        _with_ranges(source.variables, actions),
        _observed(source, observations),
        {"reward": reward, "terminated": terminated, "randomise": randomise},
        frame_skip,
        duration,
        normalise,
        render_mode,
        dict(picture or {}),
    )


def variables(scene: Any, **options: Any) -> list[Variable]:
    """The variables of a machine, inputs (those that have a ``write``) before outputs: their names, units, components and meaning.
    ``scene`` and ``options`` as of ``make``. Bodies without a name, a joint or a motion are left out, but can be asked for by their ids."""
    table = machine_of(scene, **options).variables
    return [variable for side in ("inputs", "outputs") for found in table.listed(side).values() for variable in found]


def _with_ranges(table, actions):
    """(variable, low, high) of each action."""
    given = actions if isinstance(actions, Mapping) else {name: None for name in ([actions] if isinstance(actions, str) else actions)}
    found: list[tuple[Variable, float, float]] = []
    for name, bounds in given.items():
        for variable in table.select("inputs", name):
            found.append((variable, *_range_of(variable, bounds)))
    if not found:
        raise ValueError(f"actions must name at least one input; {table.listed_by} lists them all")
    table.select("inputs", [variable.name for variable, *_ in found])  # refuses two that act on one thing
    return found


def _range_of(variable, bounds):
    bounds = variable.limits if bounds is None else bounds
    if bounds is None:
        words = f"actions={{{variable.name!r}: (low, high)}}, in {variable.unit}"
        raise ValueError(f"action {variable.name} must have a range, for its joint has none: {words}")
    low, high = checks.array(f"range of action {variable.name}", bounds, (2,))
    if not low < high:
        raise ValueError(f"range of action {variable.name} must be (low, high), low < high, not ({low:g}, {high:g})")
    return low, high


def _observed(source, observations):
    """The variables that an observation is made of; functions of the user become variables, too."""
    found: list[Variable] = []
    for one in [observations] if isinstance(observations, str) else observations:
        if isinstance(one, tuple) and len(one) == 2 and isinstance(one[0], str) and callable(one[1]):
            found.append(_of_function(*one, source.plant.simulation))
        elif isinstance(one, str):
            found += source.variables.select("outputs", one)
        else:
            raise TypeError(f"observations must be names of variables, or pairs (name, function of the simulation), not {one!r:.80}")
    if not found:
        raise ValueError(f"observations must name at least one output; {source.variables.listed_by} lists them all")
    return found


def _of_function(name, function, simulation):
    """A variable that a function gives: a number, or an array whose size is that of now."""
    size = np.size(function(simulation))

    def read(now):
        value = np.asarray(function(now.simulation), float)
        if value.size != size:
            raise ValueError(f"observation {name!r} must always be of the same size, {size}, not {value.size}")
        return value

    return Variable(name, "", "given by a function", read, components=tuple(map(str, range(size))) if size > 1 else ())


if gymnasium is not None and ID not in gymnasium.registry:
    gymnasium.register(ID, entry_point="gravel.control.env:make")
