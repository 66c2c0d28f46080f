"""Detection on the device: the stages from bodies to contacts in their order, as ``gravel.cpu.collide.detector``.

What comes out stands on the device (``device_proxies``, ``device_contacts``); stages that run on the host, and tables for users, get
copies (``proxies``, ``contacts``, ``folded``), made when they are first asked for.
"""

import numpy as np
import warp as wp

from gravel.gpu.collide import narrow
from gravel.gpu.collide.bounds import make_proxies
from gravel.gpu.collide.brute import Brute
from gravel.gpu.collide.bvh import Tree
from gravel.gpu.collide.grid import Grid
from gravel.gpu.collide.near import FEW
from gravel.gpu.collide.shape_pairs import find_contacts_by_shape_pairs
from gravel.gpu.devices import to_device, to_host
from gravel.gpu.launch import last_of, run, scan
from gravel.gpu.structs import Contacts, Margin, Pairs, Proxies
from gravel.host import collision_filter, pair_ownership, periodic_images
from gravel.host.arrays import Contacts as HostContacts
from gravel.host.arrays import Pairs as HostPairs
from gravel.host.arrays import Proxies as HostArranged
from gravel.host.traits import FEW_BODIES, traits_of
from gravel.shapes import PLANE, SPHERE

PHASES = {"grid": Grid, "bvh": Tree, "brute": Brute}


@wp.kernel(enable_backward=False)
def find_deepest(gap: wp.array(dtype=float), deepest: wp.array(dtype=float)):
    wp.atomic_max(deepest, 0, -gap[wp.tid()])


@wp.kernel(enable_backward=False)
def fold(home: wp.array(dtype=int), source: wp.array(dtype=int), target: wp.array(dtype=int)):
    """Bodies themselves instead of images."""
    c = wp.tid()
    target[c] = home[source[c]]


class DeviceDetector:
    def __init__(self, buffers, broad_phase):
        self.buffers, self.broad_phase, self.device = buffers, broad_phase, buffers.device
        self.members = self.periodic = self.lattice = None
        self.phases = {}
        self.known = {}  # copies on the host of what this detection has found
        self.contact_total, self.penetration = 0, 0.0

    def know(self, rows):
        """Take note of what kinds of bodies there are."""
        if self.members != rows.members:
            self.members, self.traits = rows.members, traits_of(rows)
            self.simple = self.traits.kinds <= {SPHERE, PLANE} and self.traits.movers <= {SPHERE}
            suits = "brute" if rows.count <= FEW_BODIES else "bvh" if self.traits.mixed else "grid"
            self.phase = suits if self.broad_phase == "auto" else self.broad_phase

    # --- the stages
    def find_bounds(self, bodies, n, real_bodies, rules, balls, jointed, periodic=None, lattice=None):
        """``bodies``: a struct of n rows on the device; where space repeats itself those behind ``real_bodies`` are images (``seen``, on
        the host)."""
        self.real_bodies = real_bodies
        self.n, self.rules, self.balls, self.periodic, self.lattice = n, rules, balls, periodic, lattice
        self.known = {}
        array = self.buffers.array
        proxies = self.device_proxies = Proxies()
        proxies.id, proxies.sphere = array("arranged_id", n, dtype=wp.int64), array("arranged_reach", n, (4,), wp.float64)
        proxies.extent = array("arranged_extent", n, (4,), wp.float64)
        proxies.tag, proxies.mass = array("arranged_tag", n, (4,), wp.int32), array("arranged_mass", n, (2,))
        proxies.velocity = array("velocity", n + 1, (8,))
        proxies.half = array("arranged_half", 0 if balls else n, (3,), wp.float64)
        proxies.quaternion = array("arranged_quaternion", n if self.traits.turned else 0, (4,), wp.float64)
        proxies.geometry = array("arranged_geometry", n if self.traits.shared else 0, dtype=wp.int32)
        self.margin = Margin()
        self.margin.absolute, self.margin.share = rules.margin
        run(make_proxies, n, [bodies, jointed, self.margin, rules.step, rules.half, proxies], self.device)
        proxies.velocity[n : n + 1].zero_()

    def sort_bodies(self):
        if self.phase not in self.phases:
            self.phases[self.phase] = PHASES[self.phase](self.buffers)
        self.phases[self.phase].sort(self.device_proxies, self.n)
        n = self.n
        self.order = np.arange(n, dtype=np.int32)
        self.row = self.home = self.order
        if self.periodic is not None:
            self.row = self.periodic.source
            self.home = self.periodic.source  # a body's proxy has the index of its row

    def count_pairs(self):
        """How many candidate pairs there are; waits for the device."""
        array, n = self.buffers.array, self.n
        found, self.pair_first = array("pair_found", n, dtype=wp.int32), array("pair_first", n + 1, dtype=wp.int32)
        nothing = array("no_pairs", 0, dtype=wp.int32)
        self._find(found, nothing, nothing)
        self.pair_first.zero_()
        scan(found, self.pair_first)
        self.pair_count = last_of(self.pair_first)
        return self.pair_count

    def fill_pairs(self):
        array = self.buffers.array
        self.pairs = Pairs()
        self.pairs.a, self.pairs.b = (array(name, self.pair_count, dtype=wp.int32) for name in ("pair_a", "pair_b"))
        self.pairs.first = self.pair_first
        if self.pair_count:
            self._find(array("pair_found", self.n, dtype=wp.int32), self.pairs.a, self.pairs.b)

    def list_pairs(self):
        self.count_pairs()
        self.fill_pairs()
        if self.periodic is not None:
            self._change_pairs(self._fold_pairs)

    def _find(self, found, a, b):
        near = self.buffers.array("partners", self.n, (FEW,), wp.int32)
        self.phases[self.phase].find(self.device_proxies, self.n, self.rules.device_ignored, found, near, self.pair_first, a, b)

    def exclude_pairs(self, excluded):
        """Take out the pairs that the collision filter excludes, if any."""
        if excluded is not None:
            self._change_pairs(lambda pairs, room: collision_filter.exclude_pairs(room, self.row, excluded, pairs))

    def keep_own_pairs(self, owner, partition):
        """Take out the pairs that other processes solve; ``owner`` of each row."""
        lattice = periodic_images.ENDLESS if self.lattice is None else self.lattice
        sphere = self.proxies.sphere
        self._change_pairs(lambda pairs, room: pair_ownership.keep_own_pairs(room, self.row, owner, sphere, partition, lattice, pairs))

    def _fold_pairs(self, pairs, room):
        periodic_images.fold_pairs(room, self.real_bodies, self.proxies, self.lattice, max(self.n, 1), pairs)

    def _change_pairs(self, change):
        """Let a function of the host change the pairs: (pairs in one tile, room)."""
        if self.pair_count == 0:
            return
        pairs = HostPairs(to_host(self.pairs.a), to_host(self.pairs.b), np.array([self.pair_count]))
        change(pairs, self.pair_count)
        self.pair_count = count = int(pairs.count[0])
        array = self.buffers.array
        for name, values in (("a", pairs.a), ("b", pairs.b)):
            target = array(f"pair_{name}", count, dtype=wp.int32)
            if count:
                to_device(values[:count], target)
            setattr(self.pairs, name, target)
        first = np.searchsorted(pairs.a[:count], np.arange(self.n + 1)).astype(np.int32)
        to_device(first, self.pairs.first)

    def find_contacts(self):
        rules = self.rules
        pair_list = self.device_proxies, self.pairs, self.pair_count, self.n, self.margin, rules.step
        if self.simple:
            found = narrow.find_ball_contacts(*pair_list, self.buffers)
        else:
            found = find_contacts_by_shape_pairs(*pair_list, rules.shapes, self.buffers, self.device)
        self.device_contacts, self.first, self.number, self.contact_total = found
        self.contact_room = self.contact_total
        self.device_folded_contacts = self.device_contacts
        self.penetration = self._penetration()
        if self.periodic is not None:
            self._fold_contacts()

    def _penetration(self):
        deepest = self.buffers.array("deepest", 1)
        deepest.zero_()
        run(find_deepest, self.contact_total, [self.device_contacts.gap, deepest], self.device)
        return float(deepest.numpy()[0]) if self.contact_total else 0.0

    def _fold_contacts(self):
        found, array = self.device_contacts, self.buffers.array
        self.device_home = array("home", self.n, dtype=wp.int32)
        to_device(self.home, self.device_home)
        folded = self.device_folded_contacts = Contacts()
        for name in ("feature", "normal", "arm", "gap"):
            setattr(folded, name, getattr(found, name))
        for name in ("a", "b"):
            target = array(f"touching_{name}", self.contact_total, dtype=wp.int32)
            run(fold, self.contact_total, [self.device_home, getattr(found, name), target], self.device)
            setattr(folded, name, target)

    # --- copies on the host
    def _copy(self, name, make):
        if name not in self.known:
            self.known[name] = make()
        return self.known[name]

    @property
    def proxies(self):
        """``gravel.host.arrays.Proxies``; velocities as they were when first asked for."""
        return self._copy("proxies", self._proxies_on_host)

    def _proxies_on_host(self):
        found = self.device_proxies
        columns = (
            to_host(getattr(found, name)) for name in ("sphere", "extent", "tag", "mass", "velocity", "half", "quaternion", "geometry")
        )
        return HostArranged(self.order, to_host(found.id), self.order, *columns)

    @property
    def sphere(self):
        return self.proxies.sphere

    @property
    def contacts(self):
        """``gravel.host.arrays.Contacts`` in one tile."""
        return self._copy("contacts", lambda: self._contacts_on_host(self.device_contacts))

    @property
    def folded_contacts(self):
        if self.periodic is None:
            return self.contacts
        return self._copy("folded", lambda: self._contacts_on_host(self.device_folded_contacts))

    def _contacts_on_host(self, found):
        columns = (to_host(getattr(found, name)) for name in ("a", "b", "feature", "normal", "arm", "gap"))
        tile = np.zeros(1, np.int64), np.array([self.contact_total])
        return HostContacts(*columns, *tile, to_host(self.first), to_host(self.number))
