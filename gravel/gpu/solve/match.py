"""Match: contacts of this step find the impulses they had in the last one, and leave theirs for the next; as ``gravel.cpu.solve.match``."""

import warp as wp

from gravel.gpu.structs import Contacts, Memory

wp.set_module_options({"enable_backward": False, "max_unroll": 0})


@wp.func
def recall(owner: int, a: wp.int64, b: wp.int64, feature: int, memory: Memory):
    """Index of the remembered contact between ids a and b that the body in row ``owner`` found, or -1."""
    if owner >= memory.first.shape[0]:
        return -1
    for c in range(memory.first[owner], memory.first[owner] + memory.number[owner]):
        if memory.feature[c] == feature:
            if (memory.a[c] == a and memory.b[c] == b) or (memory.a[c] == b and memory.b[c] == a):
                return c
    return -1


@wp.kernel
def match_contacts(
    touching: Contacts,
    identity: wp.array(dtype=wp.int64),
    memory: Memory,
    impulse: wp.array2d(dtype=float),
    torque: wp.array2d(dtype=float),
):
    """``impulse`` (and ``torque``) := what the memory holds for each contact, else zero. ``touching`` has bodies, whose places are rows."""
    c = wp.tid()
    i, j = touching.a[c], touching.b[c]
    a, b = identity[i], identity[j]
    old = recall(i, a, b, touching.feature[c], memory)
    if old < 0:
        old = recall(j, a, b, touching.feature[c], memory)
    for k in range(3):
        impulse[c, k] = 0.0
        if torque.shape[0] > 0:
            torque[c, k] = 0.0
    if old >= 0:
        sign = 1.0
        if memory.a[old] != a:
            sign = -1.0
        for k in range(3):
            impulse[c, k] = sign * memory.impulse[old, k]
            if torque.shape[0] > 0 and memory.torque.shape[0] > 0:
                torque[c, k] = sign * memory.torque[old, k]


@wp.kernel
def remember(
    contacts: Contacts,
    identity: wp.array(dtype=wp.int64),
    slot: wp.array(dtype=int),
    impulse: wp.array(dtype=wp.vec3),
    torque: wp.array(dtype=wp.vec3),
    memory: Memory,
):
    """The memory := this step's contacts and the impulses that the solver left."""
    c = wp.tid()
    memory.a[c] = identity[contacts.a[c]]
    memory.b[c] = identity[contacts.b[c]]
    memory.feature[c] = contacts.feature[c]
    for k in range(3):
        memory.impulse[c, k] = impulse[slot[c]][k]
        if torque.shape[0] > 0:
            memory.torque[c, k] = torque[slot[c]][k]
