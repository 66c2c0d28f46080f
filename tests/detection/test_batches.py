"""Contacts box by box: the same as all at once, however small the memory."""

import numpy as np
import pytest

import gravel as gv


def cloud(n, smallest, seed=0):
    rng = np.random.default_rng(seed)
    return gv.Sphere(rng.uniform(smallest, 1.0, n)), rng.uniform(0, 1.6 * n ** (1 / 3), (n, 3))


def rows(table):
    return sorted(zip(table.body_a.tolist(), table.body_b.tolist()))


@pytest.mark.parametrize("memory", [1.0, 4e-4, 1.5e-4])
@pytest.mark.parametrize("smallest, margin", [(1.0, 0.0), (0.01, 0.0), (0.3, 0.2)])
def test_batches_hold_each_contact_of_brute_force_once(memory, smallest, margin):
    sphere, places = cloud(2000, smallest)
    expected = gv.find_contacts(sphere, places, broad_phase="brute", margin=margin)
    assert len(expected) > 100
    tables = list(gv.contact_batches(sphere, places, margin=margin, memory=memory))
    assert len(tables) == 1 if memory == 1.0 else len(tables) > 3
    assert sorted(pair for table in tables for pair in rows(table)) == rows(expected)
    assert gv.count_contacts(sphere, places, margin=margin, memory=memory) == len(expected)


def test_batches_carry_the_geometry_of_the_contacts():
    sphere, places = cloud(800, 0.2, seed=3)
    table = gv.find_contacts(sphere, places)
    batches = list(gv.contact_batches(sphere, places, memory=1e-4))
    a, b = (np.concatenate([getattr(t, name) for t in batches]) for name in ("body_a", "body_b"))
    order = np.lexsort((b, a))
    for name in ("body_a", "body_b", "point", "normal", "gap"):
        found = np.concatenate([getattr(t, name) for t in batches])[order]
        assert np.allclose(found, getattr(table, name), atol=1e-12)


def test_lattice_with_bodies_exactly_on_the_cuts():
    """Unit spheres on an even lattice: 3 n^2 (n - 1) contacts, many of them across any cut."""
    n = 12
    places = 2.0 * np.stack(np.meshgrid(*[np.arange(n)] * 3), -1).reshape(-1, 3)
    for memory in (1.0, 2e-4):
        assert gv.count_contacts(gv.Sphere(1.0), places, memory=memory) == 3 * n**2 * (n - 1)


def test_one_body_that_spans_all_boxes():
    """A huge ball overlaps every small one: each is one contact, and the small ones have their own."""
    rng = np.random.default_rng(5)
    small = rng.uniform(-20, 20, (3000, 3))
    places = np.concatenate([small, [[0.0, 0.0, 0.0]]])
    sphere = gv.Sphere(np.append(np.full(3000, 0.5), 60.0))
    among = len(gv.find_contacts(gv.Sphere(0.5), small, broad_phase="brute"))
    assert gv.count_contacts(sphere, places, memory=5e-4) == among + 3000


def test_boxes_as_well_as_spheres():
    rng = np.random.default_rng(2)
    places, turns = rng.uniform(0, 12, (500, 3)), rng.normal(size=(500, 4))
    box = gv.Box((0.5, 0.7, 0.9))
    expected = gv.find_contacts(box, places, turns, broad_phase="brute")
    assert len(expected) > 100
    assert gv.count_contacts(box, places, turns, memory=2e-4) == len(expected)


def test_no_bodies_no_contacts():
    assert gv.count_contacts(gv.Sphere(1.0), np.empty((0, 3))) == 0
    assert list(gv.contact_batches(gv.Sphere(1.0), np.empty((0, 3)))) == []


@pytest.mark.parametrize(
    "arguments, error, words",
    [
        ((gv.Sphere(1.0), [[0, 0, np.nan]]), ValueError, ("positions", "nan")),
        ((gv.Sphere([1.0, 2.0]), np.zeros((3, 3))), ValueError, ("2 sizes", "3 rows")),
        ((gv.Plane(), np.zeros((1, 3))), TypeError, ("shapes", "Plane")),
        ((gv.Sphere(1.0), np.zeros((2, 3)), np.zeros((3, 4))), ValueError, ("quaternions",)),
    ],
)
def test_bad_input_is_refused(arguments, error, words):
    with pytest.raises(error) as caught:
        gv.count_contacts(*arguments)
    assert all(word in str(caught.value) for word in words)
    with pytest.raises(error):
        gv.contact_batches(*arguments)  # at once, not when the first batch is asked for


def test_too_little_memory_is_said():
    with pytest.raises(ValueError, match="memory must be larger than 1e-05 GB"):
        gv.count_contacts(gv.Sphere(1.0), np.zeros((100, 3)), memory=1e-5)
    with pytest.raises(ValueError, match="memory"):
        gv.count_contacts(gv.Sphere(1.0), np.zeros((100, 3)), memory=0)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_contact_whose_corner_is_on_a_cut_belongs_to_one_side(axis):
    from gravel.detection.batches import _Work
    from gravel.host.boxes import count_owned, lower_bound

    sphere, places = cloud(300, 0.5, seed=7)
    with _Work(sphere, places, None, 0.0, 1.0, None, "cpu") as work:
        ((_, (engine, low, high)),) = work.each_box(lambda *box: box)
    total = engine.count_contacts_in(low, high)
    found = engine.detector
    reach = found.proxies.sphere
    a, b = found.contacts.a[0], found.contacts.b[0]
    cut = max(lower_bound.py_func(reach[k, axis], reach[k, 3]) for k in (a, b))
    below, above = high.copy(), low.copy()
    below[axis] = above[axis] = cut
    assert total == found.contact_total > 100
    assert count_owned(found.contacts, reach, low, below) + count_owned(found.contacts, reach, above, high) == total


def test_devices_that_take_boxes_in_turns_count_what_one_counts():
    sphere, places = cloud(9000, 0.5, seed=8)
    tables = list(gv.contact_batches(sphere, places, memory=0.002, device=["warp:cpu", "warp:cpu"]))
    pairs = {(int(a), int(b)) for table in tables for a, b in zip(table.body_a, table.body_b)}
    known = gv.find_contacts(sphere, places)
    assert len(tables) > 2 and pairs == set(zip(known.body_a.tolist(), known.body_b.tolist()))
    assert gv.count_contacts(sphere, places, memory=0.002, device=["warp:cpu", "warp:cpu"]) == len(known)


def test_devices_must_be_named():
    sphere, places = cloud(10, 0.5, seed=9)
    with pytest.raises(ValueError, match="device must name at least one"):
        gv.count_contacts(sphere, places, device=[])
