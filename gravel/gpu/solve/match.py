"""Match: contacts of this step find the impulses they had in the last one, and leave theirs for the next; as ``gravel.cpu.solve.match``."""

import warp as wp

from gravel.gpu.structs import ContactCache, Contacts

wp.set_module_options({"enable_backward": False, "max_unroll": 0})


@wp.func
def find_cached(owner: int, a: wp.int64, b: wp.int64, feature: int, cache: ContactCache):
    """Index of the cached contact between ids a and b that the body in row ``owner`` found, or -1."""
    if owner >= cache.first.shape[0]:
        return -1
    for c in range(cache.first[owner], cache.first[owner] + cache.number[owner]):
        if cache.feature[c] == feature:
            if (cache.a[c] == a and cache.b[c] == b) or (cache.a[c] == b and cache.b[c] == a):
                return c
    return -1


@wp.kernel
def match_contacts(
    folded: Contacts,
    identity: wp.array(dtype=wp.int64),
    cache: ContactCache,
    impulse: wp.array2d(dtype=float),
    torque: wp.array2d(dtype=float),
):
    """``impulse`` (and ``torque``) := what the cache holds for each contact, else zero. ``folded`` has bodies: their proxies have the
    indices of their rows."""
    c = wp.tid()
    i, j = folded.a[c], folded.b[c]
    a, b = identity[i], identity[j]
    old = find_cached(i, a, b, folded.feature[c], cache)
    if old < 0:
        old = find_cached(j, a, b, folded.feature[c], cache)
    for k in range(3):
        impulse[c, k] = 0.0
        if torque.shape[0] > 0:
            torque[c, k] = 0.0
    if old >= 0:
        sign = 1.0
        if cache.a[old] != a:
            sign = -1.0
        for k in range(3):
            impulse[c, k] = sign * cache.impulse[old, k]
            if torque.shape[0] > 0 and cache.torque.shape[0] > 0:
                torque[c, k] = sign * cache.torque[old, k]


@wp.kernel
def store_impulses(
    contacts: Contacts,
    identity: wp.array(dtype=wp.int64),
    slot: wp.array(dtype=int),
    impulse: wp.array(dtype=wp.vec3),
    torque: wp.array(dtype=wp.vec3),
    cache: ContactCache,
):
    """The cache := this step's contacts and the impulses that the solver left."""
    c = wp.tid()
    cache.a[c] = identity[contacts.a[c]]
    cache.b[c] = identity[contacts.b[c]]
    cache.feature[c] = contacts.feature[c]
    for k in range(3):
        cache.impulse[c, k] = impulse[slot[c]][k]
        if torque.shape[0] > 0:
            cache.torque[c, k] = torque[slot[c]][k]
