"""Materials, and what two of them do at a contact.

Mixed pairs: the geometric mean of friction, rolling and spinning friction (a frictionless partner makes the pair
frictionless), the larger restitution (a rubber ball bounces on steel), the smaller cohesion (both must be sticky).
``Scene.set_pair`` and ``Simulation.set_pair`` replace any of these for one pair.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gravel import checks

PAIR_FIELDS = ("friction", "restitution", "rolling_friction", "spinning_friction", "cohesion")
FRICTION_COLUMN, RESTITUTION_COLUMN = PAIR_FIELDS.index("friction"), PAIR_FIELDS.index("restitution")  # of tables of contact values
ROLLING_COLUMN, SPINNING_COLUMN = PAIR_FIELDS.index("rolling_friction"), PAIR_FIELDS.index("spinning_friction")
COHESION_COLUMN = PAIR_FIELDS.index("cohesion")
PROPERTIES = ("density", *PAIR_FIELDS)
LONGEST = 60  # letters of a material's name


@dataclass(frozen=True)
class Material:
    """What bodies are made of, and what that does where they touch.

    - ``density`` kg/m3: gives bodies their mass, unless that is given
    - ``friction`` (no unit): the most that the tangential force may be, over the normal force
    - ``restitution`` (no unit, 0 to 1): speed after an impact over speed before
    - ``rolling_friction`` m, a length: the most that the torque against rolling may be, over the normal force. A ball rolls down from
      the slope whose tangent is this over its radius; so sand of radius r has about 0.1 r, and more than r means that it cannot roll
    - ``spinning_friction`` m, a length: the same for the torque about the contact normal
    - ``cohesion`` N: the pull that a touching contact can bear
    - ``name``: what results, reports, legends and scene files call it (none: its number)

    Each object is a material of its own: of two that are equal, ``set_pair`` means the one that it is given. (As long as no pair names
    one, equal materials do the same, so a new ``Material(friction=0.5)`` for each of many bodies costs no more than one for all.)
    """

    density: float = 1000.0
    friction: float = 0.5
    restitution: float = 0.0
    rolling_friction: float = 0.0
    spinning_friction: float = 0.0
    cohesion: float = 0.0
    name: str = ""

    def __post_init__(self):
        for name in PROPERTIES:
            bounds = {"density": {"above": 0.0}, "restitution": {"minimum": 0.0, "maximum": 1.0}}
            limits = bounds.get(name, {"minimum": 0.0})
            object.__setattr__(self, name, checks.number(f"Material {name}", getattr(self, name), **limits))
        if not isinstance(self.name, str) or self.name != self.name.strip() or not (self.name.isprintable() and len(self.name) <= LONGEST):
            raise ValueError(f"Material name must be a text of one line, at most {LONGEST} letters, not {self.name!r:.80}")

    def __copy__(self) -> "Material":
        return self  # it never changes, and a copy would be another material

    def __deepcopy__(self, memo) -> "Material":
        return self


DEFAULT = Material()  # of all bodies that are given none


class Materials(Sequence):
    """The materials of a scene, each object by itself, numbered as they come, and the contact values given for ``pairs`` of them.

    What bodies do at contacts stands in a table with a row for each kind of material: equal materials share one (``row``, by number),
    unless a pair names them; then they have one of their own. So the table stays small however many equal objects there are.
    """

    def __init__(self, rows: Iterable[Material] = (), pairs: Mapping[tuple[int, int], dict] | None = None):
        """``rows``: materials that get a row each even if they are equal, as a file holds them, with values for pairs of them."""
        self.kinds: list[Material] = list(rows)  # one for each row
        self.pairs = {pair: dict(values) for pair, values in (pairs or {}).items()}  # (i, j), i <= j -> explicit contact values
        self.row = list(range(len(self.kinds)))
        self._all = list(self.kinds)
        named = {number for pair in self.pairs for number in pair}
        self._common = {material: row for row, material in enumerate(self.kinds) if row not in named}  # rows that others may share
        self._members = [1] * len(self.kinds)  # of each row
        self._number = {id(material): number for number, material in enumerate(self._all)}

    def __len__(self):
        return len(self._all)

    def __repr__(self) -> str:
        return f"Materials({len(self)} materials, {len(self.pairs)} pairs)"

    def __getitem__(self, number):
        return self._all[number]

    def __contains__(self, material):
        """Whether this very object is one of them."""
        return id(material) in self._number

    def number_of(self, material: Material) -> int:
        """The number of a material; a new one is added."""
        if not isinstance(material, Material):
            raise TypeError(f"material must be a Material, not {material!r}")
        if material not in self:
            self._number[id(material)] = len(self._all)
            self._all.append(material)
            if material not in self._common:
                self._common[material] = self._new_row(material)
            self.row.append(self._common[material])
            self._members[self.row[-1]] += 1
        return self._number[id(material)]

    def set_pair(self, material_a: Material, material_b: Material, values: Mapping[str, float]) -> None:
        for material in (material_a, material_b):
            if not isinstance(material, Material):
                raise TypeError(f"material must be a Material, not {material!r}")
        for name, value in values.items():
            checks.choice("contact value", name, PAIR_FIELDS)
            checks.number(name, value, minimum=0.0, maximum=1.0 if name == "restitution" else None)
        i, j = sorted(map(self.number_of, (material_a, material_b)))
        for number in (i, j):
            self._give_own_row(number)
        self.pairs.setdefault((i, j), {}).update(values)

    def contact_values(self) -> np.ndarray:
        """(rows, rows, fields) contact values, in the order of PAIR_FIELDS."""
        return pair_table(self.kinds, self.pairs_of_rows())

    def pairs_of_rows(self) -> dict[tuple[int, int], dict]:
        """``pairs`` by row."""
        return {(min(rows), max(rows)): values for (i, j), values in self.pairs.items() if (rows := (self.row[i], self.row[j]))}

    def copy(self) -> "Materials":
        twin = Materials()
        twin.__setstate__(self.__getstate__())
        return twin

    def _new_row(self, material):
        self.kinds.append(material)
        self._members.append(0)
        return len(self.kinds) - 1

    def _give_own_row(self, number):
        material, row = self._all[number], self.row[number]
        if self._common.get(material) != row:
            return
        if self._members[row] == 1:
            del self._common[material]
        else:
            self._members[row] -= 1
            self.row[number] = self._new_row(material)
            self._members[self.row[number]] = 1

    def __getstate__(self):
        pairs = {pair: dict(values) for pair, values in self.pairs.items()}
        return list(self.kinds), pairs, list(self.row), list(self._all), dict(self._common), list(self._members)

    def __setstate__(self, state):
        self.kinds, self.pairs, self.row, self._all, self._common, self._members = state
        self._number = {id(material): number for number, material in enumerate(self._all)}  # objects may be others than before


MIX = {"restitution": np.maximum, "cohesion": np.minimum}  # of the others, the geometric mean


def pair_table(materials, explicit):
    """(M, M, fields) contact values of every pair, in the order of PAIR_FIELDS; ``explicit`` maps (i, j) to given values."""
    table = np.zeros((len(materials), len(materials), len(PAIR_FIELDS)))
    for k, name in enumerate(PAIR_FIELDS):
        own = np.array([getattr(material, name) for material in materials], float)
        mixed = MIX[name].outer(own, own) if name in MIX else np.sqrt(np.multiply.outer(own, own))
        table[..., k] = mixed
        for (i, j), values in explicit.items():
            table[i, j, k] = table[j, i, k] = values.get(name, mixed[i, j])
    return table
