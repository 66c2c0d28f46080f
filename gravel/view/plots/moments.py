"""What a state looks like at one moment: distributions of forces and sizes, profiles of packing, coordination and velocity.

Every function takes a ``Simulation`` or a ``Frame`` and matplotlib axes.
"""

import numpy as np

from gravel import checks, measures
from gravel.measures.snapshot import snapshot_of
from gravel.view import need
from gravel.view.plots.style import COLOURS, QUIET, few_ticks

TAIL = 30  # contacts above the mean: of fewer no law is fitted
FEW_SIZES, SAME_SIZE = 8, 1e-4  # so many sizes have a bar each; diameters that differ by less, of their size, are one (files round)
WIDE, RARE = 5.0, 30.0  # ratios of sizes, and of counts, from which scales are logarithmic
COMPONENTS = ("x", "y", "z", "speed")


def forces(moment, axes, bins=30, region=None):
    """The distribution of normal forces, logarithmic, beside the exponential law that fits those above the mean, if they are enough.

    Of an exponential tail the mean excess over any value is the same: its rate is 1 over the mean excess over <f> (which is also the
    estimate of maximum likelihood)."""
    found = measures.force_distribution(moment, bins, region)
    force = measures.normal_forces(moment, region) / found.mean
    middles = 0.5 * (found.edges[1:] + found.edges[:-1])
    some = found.density > 0
    axes.plot(middles[some], found.density[some], ls="none", marker="o", label=f"{len(force)} contacts that push")
    above = force[force > 1]
    if len(above) >= TAIL and above.mean() > 1:
        rate = 1 / (above.mean() - 1)
        tail = np.array([1.0, force.max()])
        density = len(above) / len(force) * rate * np.exp(-rate * (tail - 1))
        axes.plot(tail, density, ls="--", color=QUIET, label=f"exponential tail, exp(−{rate:.2f} f / ⟨f⟩)")
    axes.set_yscale("log")
    axes.set(xlabel=f"normal force over its mean, f / ⟨f⟩, ⟨f⟩ = {found.mean:.3g} N", ylabel="probability density")
    axes.set_title(_at(moment))
    axes.legend()


# --- along an axis
def packing(moment, axes, axis="z", bins=20, region=None):
    places, values = measures.packing_profile(moment, axis, bins, region)
    along_axis(axes, places, {None: values}, "packing fraction")
    axes.set_title(within(moment, places))
    _set_low(axes, places, 0.0)


def coordination(moment, axes, axis="z", bins=20, region=None):
    places, values = measures.coordination_profile(moment, axis, bins, region)
    along_axis(axes, places, {None: values}, "coordination number, partners of a body")
    axes.set_title(within(moment, places))
    _set_low(axes, places, 0.0)


def coordination_if_saved(moment, axes, axis="z", bins=20, region=None):
    """The same, or words that say why there is none."""
    try:
        snapshot_of(moment).contacts  # noqa: B018  # refused where they were not saved
    except ValueError:
        axes.set_axis_off()
        words = "no coordination number:\ncontacts were not saved\n(gravel run --contacts)"
        axes.annotate(words, (0.5, 0.5), xycoords="axes fraction", ha="center", va="center", color=QUIET)
        return
    coordination(moment, axes, axis, bins, region)


def velocity(moment, axes, axis="z", component=None, bins=20, region=None):
    """Mean velocity in slabs, of one component (x, y, z, speed) or of all three."""
    places, means = measures.velocity_profile(moment, axis, bins, region)
    curves = {f"along {name}": means[:, k] for k, name in enumerate("xyz")}
    label = "mean velocity, m/s"
    if component is not None:
        checks.choice("component", component, COMPONENTS)
        speed = component == "speed"
        curves = {None: np.linalg.norm(means, axis=1) if speed else means[:, "xyz".index(component)]}
        label = "mean velocity, its length, m/s" if speed else f"mean velocity along {component}, m/s"
    along_axis(axes, places, curves, label)
    axes.set_title(within(moment, places))


def along_axis(axes, places, curves, label):
    """Curves over the middles of slabs; heights are drawn upwards."""
    upright, words = places.axis == 2, "height z, m" if places.axis == 2 else f"{'xy'[places.axis]}, m"
    for name, values in curves.items():
        across = (values, places.middles) if upright else (places.middles, values)
        axes.plot(*across, marker="o", label=name)
    axes.set(**({"xlabel": label, "ylabel": words} if upright else {"xlabel": words, "ylabel": label}))
    if len(curves) > 1:
        axes.legend()


def _set_low(axes, places, low):
    axes.set_xlim(left=low) if places.axis == 2 else axes.set_ylim(bottom=low)


def within(moment, places):
    """When, and in which box."""
    spans = [f"{name} {low:.3g} to {high:.3g}" for name, low, high in zip("xyz", places.low, places.high)]
    return f"{_at(moment)}\nin the box {', '.join(spans)} m"


# --- sizes
def size_numbers(moment, axes, bins=None):
    """How many bodies have which diameter (of the ball around them): a bar for each size if there are a few, else a histogram, in classes
    of one ratio where sizes differ much. Counts that differ much are on a logarithmic scale, so that the rare size is seen too."""
    diameter = _diameters(moment)
    sizes, counts = few_sizes(diameter)
    if bins is None and len(sizes):
        marks = np.arange(len(sizes))
        axes.bar(marks, counts, width=0.5, color=COLOURS[0])
        axes.set_xticks(marks, [f"{size:.4g}" for size in sizes])
        axes.set_xlim(-0.8, len(sizes) - 0.2)
    else:
        count = checks.count("bins", 30 if bins is None else bins, minimum=1)
        low, high = diameter.min(), diameter.max()
        wide = high > WIDE * low
        edges = np.geomspace(low, high, count + 1) if wide else np.histogram_bin_edges(diameter, count)
        edges[0], edges[-1] = min(edges[0], low), max(edges[-1], high)  # whatever was rounded on the way
        counts = axes.hist(diameter, edges, color=COLOURS[0])[0]
        _over_sizes(axes, wide)
    if counts.max() > RARE * counts[counts > 0].min():
        axes.set_yscale("log")
        axes.set_ylim(bottom=0.5)
    axes.set(xlabel="diameter, m", ylabel="bodies")
    axes.set_title(_at(moment))


def few_sizes(diameter):
    """(sizes, how many bodies have each) where there are only a few that are apart from each other; else nothing."""
    ordered = np.sort(diameter)
    firsts = np.concatenate([[0], np.flatnonzero(np.diff(ordered) > SAME_SIZE * ordered[1:]) + 1])
    if len(firsts) > FEW_SIZES:
        return np.zeros(0), np.zeros(0, int)
    ends = np.append(firsts[1:], len(ordered))
    alike = ordered[ends - 1] - ordered[firsts] <= SAME_SIZE * ordered[firsts]
    return (ordered[firsts], ends - firsts) if alike.all() else (np.zeros(0), np.zeros(0, int))


def size_shares(moment, axes, bins=None):
    """The share of the mass in bodies of at most that diameter: the curve of a sieve."""
    diameter = _diameters(moment)
    order = np.argsort(diameter, kind="stable")
    share = np.cumsum(snapshot_of(moment).masses[order])
    axes.plot(np.repeat(diameter[order], 2), 100 * np.repeat(np.append(0.0, share / share[-1]), 2)[1:-1])
    _over_sizes(axes, diameter.max() > WIDE * diameter.min())
    axes.set(xlabel="diameter, m", ylabel="mass in smaller bodies, %", ylim=(0, 100))
    axes.set_title(_at(moment))


def _over_sizes(axes, wide):
    """Few numbers below a panel of sizes; of ``wide`` ones on a logarithmic scale."""
    if not wide:
        return few_ticks(axes)
    ticker = need("matplotlib.ticker")
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_formatter(ticker.NullFormatter())


def _diameters(moment):
    snapshot = snapshot_of(moment)
    if not len(snapshot):
        raise ValueError(f"there are no bodies that can move at t = {snapshot.time:g} s, whose sizes could be plotted")
    return 2 * snapshot.radii


def _at(moment):
    snapshot = snapshot_of(moment)
    return f"t = {snapshot.time:.4g} s, {len(snapshot)} bodies"
