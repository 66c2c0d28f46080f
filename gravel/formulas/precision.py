"""Numbers in the precision of others: a literal in a formula would carry single precision on into double."""

from __future__ import annotations


def like(x: float, number: float):
    """``number`` in the precision of x."""
    return type(x)(number)
