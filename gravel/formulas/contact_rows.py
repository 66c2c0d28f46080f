"""Contacts of one pair as rows: normal from a to b, point, gap."""

from __future__ import annotations

from gravel.formulas.kinds import Names, Table


def write_contact(out: Table, feature: Names, k: int, name: int, nx: float, ny: float, nz: float, x: float, y: float, z: float, gap: float):
    """Row k := a contact; returns the number of the next row."""
    out[k, 0] = nx
    out[k, 1] = ny
    out[k, 2] = nz
    out[k, 3] = x
    out[k, 4] = y
    out[k, 5] = z
    out[k, 6] = gap
    feature[k] = name
    return k + 1
