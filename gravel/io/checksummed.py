"""Sealed files: arrays and a description in one HDF5 file, which ends with the SHA-256 of all that stands before.

Written to a temporary file and renamed when it is on the disk. A file that is foreign, truncated, damaged or of another version is refused
with a ``ValueError`` that names it, before it is opened.
"""

import contextlib
import hashlib
import json
import os
import re

import h5py

from gravel.errors import DeviceError, MissingFunctionError
from gravel.io import validate_file
from gravel.io.validate_file import DAMAGE
from gravel.io.vtkhdf import check_room

VERSION = 10
SPARE_BYTES = 1_000_000  # for what is not in the arrays
MAGIC = b"\x89HDF"
SEAL, SEAL_BYTES = b"gravel checkpoint, sha256 ", 90
CHUNK = 1 << 24  # bytes that are read at once


def write_sealed(path, arrays, description):
    """Write arrays and a description, which is put into words, to a file in one piece; returns the SHA-256 of its seal."""
    check_room(path, SPARE_BYTES + sum(array.nbytes for array in arrays.values()))
    temporary = path.with_name(path.name + ".part")
    try:
        with h5py.File(temporary, "w") as file:
            write_contents(file, arrays, description)
        digest = seal(temporary)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
    return digest


def write_contents(file, arrays, description):
    """Fill an open file."""
    for name, array in arrays.items():
        file[name] = array
    file.attrs["gravel_checkpoint"] = VERSION
    file.attrs["description"] = json.dumps(description)


def contents(file):
    """(all arrays of an open file by name, its description)."""
    return validate_file.arrays_of(file), json.loads(file.attrs["description"])


@contextlib.contextmanager
def damage_of(path):
    """What goes wrong inside is the fault of a file, but for functions that were not given and devices that are not there."""
    try:
        yield
    except (DeviceError, MissingFunctionError):
        raise
    except DAMAGE as error:
        raise ValueError(f"{path} is damaged, or not a checkpoint of gravel: {error}") from error


def seal(path):
    """Append the seal, and see the file to the disk; returns the SHA-256."""
    with open(path, "r+b") as file:
        digest = _digest(file, os.path.getsize(path))
        file.seek(0, os.SEEK_END)
        file.write((SEAL + digest).ljust(SEAL_BYTES))
        file.flush()
        os.fsync(file.fileno())
    return digest.decode()


def _digest(file, length):
    """SHA-256 of the first bytes of an open file, as text."""
    digest = hashlib.sha256()
    while length > 0:
        piece = file.read(min(CHUNK, length))
        if not piece:
            break
        digest.update(piece)
        length -= len(piece)
    return digest.hexdigest().encode()


def check_seal(path):
    """Refuse what is not a whole checkpoint of this version; returns the SHA-256 of its seal."""
    if not path.exists():
        raise FileNotFoundError(f"there is no checkpoint {path}")
    if not path.is_file():
        raise ValueError(f"{path} is not a file, and not a checkpoint of gravel")
    with open(path, "rb") as file:
        if file.read(len(MAGIC)) != MAGIC:
            raise ValueError(f"{path} is not a checkpoint of gravel, or its beginning is damaged")
        length = max(os.path.getsize(path) - SEAL_BYTES, 0)
        file.seek(length)
        seal = file.read().rstrip()
        file.seek(0)
        digest = _digest(file, length)
    good = seal == SEAL + digest
    version = _version(path) if good or not re.search(rb"sha256 [0-9a-f]{60}", seal) else None
    if version not in (None, VERSION):  # some had no seal
        raise ValueError(f"{path} has checkpoint version {version}, this gravel reads version {VERSION}")
    if not good:
        raise ValueError(f"{path} is truncated or damaged, or not a checkpoint of gravel: its checksum does not fit its content")
    return digest.decode()


def _version(path):
    """The version that a file says it has, or None."""
    try:
        with h5py.File(path, "r") as file:
            return int(file.attrs["gravel_checkpoint"])
    except DAMAGE:
        return None
