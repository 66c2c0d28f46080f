"""Grains of a scene file: on a lattice, at random, poured over time, or one by one."""

import functools

import numpy as np

from gravel.packing.blend import Mixture, parts_of, random_turns, scaled
from gravel.packing.pack import KEPLER, most_bodies, pack
from gravel.packing.pour import pour
from gravel.scenefile.making import beside, region_of, sizes_of, table_of, turn_of, with_sizes
from gravel.scenefile.values import BAD, any_bad
from gravel.shapes import Sphere

SPARE_RATE = 2.0  # a pour is refused beyond so many times what can be poured
MOST = 100_000_000  # places of a lattice


def place(builder, given, seed):
    """Add a group of grains to the builder's scene, or a pour to its list."""
    if given is BAD:
        return
    options, what = builder.common(given), _what(builder, given)
    if options is None or what is BAD:
        builder.remember(given, BAD)
        return
    placement = given["placement"]
    add = {"lattice": _on_lattice, "random": _at_random, "pour": _poured, "listed": _listed, "table": _from_table}[placement.kind]
    whole = functools.partial(add, builder, given, what, options, given.get("seed", seed))
    both = _Both(given, placement.given)
    ids = builder.attempt(both, whole)
    for body in () if ids is BAD or not {"force", "torque"} & set(given) else ids.tolist():
        builder.attempt(both, builder.scene.set_force, body, **given.only("force", "torque"))
    builder.remember(given, ids)


class _Both:
    """The keys of a group of grains and of its placement together, for errors that are about either."""

    def __init__(self, outer, inner):
        self.outer, self.inner = outer, inner

    @property
    def item(self):
        return self

    @property
    def value(self):
        return {**self.outer.item.value, **self.inner.item.value}

    def line_of(self, key):
        return (self.inner if key in self.inner.item.value else self.outer).line_of(key)

    def path_of(self, key):
        return (self.inner if key in self.inner.item.value else self.outer).path_of(key)


class What:
    """What is placed: a shape (perhaps a class, with sizes) or a mixture, with a material for each of its parts."""

    def __init__(self, shape, sizes, materials=None):
        self.shape, self.sizes, self.materials = shape, sizes, materials


def _what(builder, given):
    sizes = builder.attempt(given["sizes"].given, sizes_of, given["sizes"]) if "sizes" in given else None
    if "shape" in given:
        shape = builder.shapes.make(given["shape"])
        return BAD if any_bad((shape, sizes)) else What(shape, sizes)
    parts = [_mixed(builder, part) for part in given["mixture"]]
    if any_bad(parts):
        return BAD
    mixture = builder.attempt(given, Mixture, [part[0] for part in parts])
    own = builder.material(given.get("material"))
    return BAD if mixture is BAD else What(mixture, sizes, [own if one is None else one for _, one in parts])


def _mixed(builder, part):
    shape = builder.shapes.make(part["shape"])
    sizes = builder.attempt(part["sizes"].given, sizes_of, part["sizes"]) if "sizes" in part else None
    material = builder.material(part["material"]) if "material" in part else None
    if any_bad((shape, sizes, material)):
        return BAD
    return (shape, part["share"]) if sizes is None else (shape, part["share"], sizes), material


def _need_sizes(what, given):
    """Refuse a shape that is just a word, and nothing that says how large it is."""
    if isinstance(what.shape, type):
        word = given["shape"]
        if what.sizes is None:
            raise ValueError(f"shape must say how large it is, as in {word}: {{...}}, or sizes must be given")
        if what.shape is not Sphere:
            raise ValueError(f"shape must be sphere where sizes alone say how large it is; give the {word} of size 1")


def _material(what, options):
    return options["material"] if what.materials is None else what.materials


def _alike(given, n):
    """Velocities that all grains have alike, as arrays."""
    names = {"velocity": "velocities", "angular_velocity": "angular_velocities"}
    return {names[key]: np.tile(value, (n, 1)) for key, value in given.only(*names).items()}


def _at_random(builder, given, what, options, seed):
    _need_sizes(what, given)
    _refuse(given, "rotation", "random")
    inner = given["placement"].given
    region = builder.attempt(inner["region"].given, region_of, inner["region"], builder.folder)
    if region is BAD:
        return BAD
    packing = pack(
        what.shape, region, sizes=what.sizes, seed=seed, periodic=_periodic(builder, region), **inner.only("fraction", "count", "gap")
    )
    some = {name: value for name, value in options.items() if name != "material"}
    return packing.add_to(builder.scene, _material(what, options), **some, **_alike(given, len(packing)))


def _periodic(builder, region):
    """The axes along which the region is as long as the periodic cell, as ``pack`` wants them."""
    cell = builder.scene.cell
    if cell is None or not hasattr(region, "low"):
        return None
    axes = [
        (float(low), float(high)) if cell.periodic[k] and np.isclose(low, cell.low[k]) and np.isclose(high, cell.high[k]) else None
        for k, (low, high) in enumerate(zip(region.low, region.high))
    ]
    return axes if any(axes) else None


def _poured(builder, given, what, options, seed):
    _need_sizes(what, given)
    inner = given["placement"].given
    for name in ("rotation", "motion", "fixed", "surface_velocity", "group", "angular_velocity", "force", "torque"):
        _refuse(given, name, "pour")
    inlet = builder.attempt(inner["inlet"].given, region_of, inner["inlet"], builder.folder)
    if inlet is BAD:
        return BAD
    arguments = {"sizes": what.sizes, "material": _material(what, options), "seed": seed}
    arguments.update(inner.only("rate", "number_rate", "start", "until", "total"), **given.only("velocity"))
    make = functools.partial(pour, what.shape, inlet, **arguments)
    _check_rate(inner, make(), inlet, builder.scene.gravity)  # making it refuses what is wrong
    builder.pours.append(make)
    return np.empty(0, int)  # there is nobody yet


def _check_rate(inner, pourer, inlet, gravity):
    """Refuse a rate that cannot be poured. Bodies leave the inlet at most as fast as a fall along its diagonal makes them, through all
    faces of the box around it, as close as equal balls can lie."""
    edges = np.subtract(*reversed(inlet.bounds))
    speed = np.linalg.norm(pourer.velocity) + np.sqrt(2 * np.linalg.norm(gravity) * np.linalg.norm(edges))
    faces = 2 * float(np.sum(np.prod(edges) / edges))
    volume = KEPLER * faces * float(speed)  # m3/s
    mean = pourer.mean_mass / pourer.mean_volume if pourer.by_mass else 1 / pourer.mean_volume
    most, name = SPARE_RATE * volume * mean, "rate" if pourer.by_mass else "number_rate"
    if speed > 0 and inner[name] > most:
        unit = "kg/s" if pourer.by_mass else "bodies a second"
        raise ValueError(f"{name} must be at most {most:.2g} {unit}, as many as can leave this inlet, not {inner[name]:g}")


def _refuse(given, name, kind):
    if name in given:
        raise ValueError(f"{name} cannot be given with a placement {kind}")


def _on_lattice(builder, given, what, options, seed):
    _need_sizes(what, given)
    if what.materials is not None:
        raise ValueError("mixture goes with a placement random or pour")
    inner, rng = given["placement"].given, np.random.default_rng(seed)
    places = lattice(inner["low"], inner["high"], inner["spacing"], inner.get("count"))
    n = len(places)
    places = places + rng.uniform(-1, 1, (n, 3)) * inner.get("jitter", 0.0)
    (part,) = parts_of(what.shape, what.sizes)
    shape = part.shape if what.sizes is None else scaled(part.shape, part.draw(rng, n))
    turns = _turns(given.get("rotation", "none"), rng, n)
    return builder.scene.add_bodies(shape, places, quaternions=turns, **options, **_alike(given, n))


def _turns(rotation, rng, n):
    if isinstance(rotation, str):
        return None if rotation == "none" else random_turns(rng, n)
    return np.tile(turn_of(rotation), (n, 1))


def lattice(low, high, spacing, count=None):
    """(n, 3) centres of cubes of ``spacing`` m that fill a box, along x first, then y, then upwards; the first ``count`` of them."""
    low, high = np.array(low), np.array(high)
    if not (high > low).all():
        raise ValueError(f"high must be above low {low.tolist()} along every axis, not {high.tolist()}")
    most = (high - low) / spacing
    if most.prod() > MOST and count is None:
        fits = (high - low).prod() ** (1 / 3) / MOST ** (1 / 3)
        raise ValueError(f"spacing must leave at most {MOST} places, not {most.prod():.3g}: {fits:.2g} m would")
    numbers = np.floor(most + 1e-9).astype(int)
    if (numbers < 1).any():
        raise ValueError(f"spacing must be at most the shortest edge of the box, {(high - low).min():g} m, not {spacing:g}")
    if count is not None and count > numbers.prod():
        raise ValueError(f"count must be at most {numbers.prod()}, as many as the box holds, not {count}")
    n = int(numbers.prod()) if count is None else count
    if n > (most_here := most_bodies()):
        key = "spacing" if count is None else "count"
        raise ValueError(f"{key} must leave at most {most_here} bodies, as many as this machine's memory holds, not {n}")
    k = np.arange(n)
    cell = np.stack([k % numbers[0], k // numbers[0] % numbers[1], k // (numbers[0] * numbers[1])], axis=1)
    corner = 0.5 * (low + high - (numbers - 1) * spacing)
    corner[2] = low[2] + 0.5 * spacing
    return corner + cell * spacing


def _listed(builder, given, what, options, seed):
    return _add_rows(builder, given, what, options, seed, dict(given["placement"].given))


def _from_table(builder, given, what, options, seed):
    return _add_rows(builder, given, what, options, seed, table_of(beside(builder.folder, given["placement"].given["file"])))


def _add_rows(builder, given, what, options, seed, rows):
    if what.materials is not None or what.sizes is not None:
        raise ValueError(f"{'mixture' if what.materials else 'sizes'} cannot be given where bodies are placed one by one")
    if np.ndim(rows["positions"]) != 2:
        raise ValueError("positions must be rows of three numbers")
    n = len(rows["positions"])
    for name, values in rows.items():
        if len(values) != n:
            raise ValueError(f"{name} must have a row for each of the {n} bodies, not {len(values)}")
    shape, sizes = what.shape, rows.pop("sizes", None)
    if sizes is not None:
        shape = with_sizes(shape, given["shape"], sizes)
    elif isinstance(shape, type):
        raise ValueError(f"shape must say how large it is, as in {given['shape']}: {{...}}, or the placement must have sizes")
    if "rotation" in given:
        if "quaternions" in rows:
            raise ValueError("rotation cannot be given beside quaternions")
        rows["quaternions"] = _turns(given["rotation"], np.random.default_rng(seed), n)
    return builder.scene.add_bodies(shape, **options, **{**_alike(given, n), **rows})
