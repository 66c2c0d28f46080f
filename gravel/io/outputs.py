"""Where files may be written: paths that cannot be are refused before any work is done, and room is asked for before it is used."""

import ctypes
import errno
import os
import pathlib
import shutil
from contextlib import contextmanager

try:
    import resource
except ImportError:  # no such limit on this system
    resource = None  # type: ignore[assignment]
allocate = getattr(ctypes.CDLL(None, use_errno=True), "fallocate", None) if os.name == "posix" else None


def check_writable(path, suffix=""):
    """Refuse a path that a file cannot be written to, before any work is done; returns it, of a symbolic link what it leads to.
    ``suffix``: what is added to the name while the file is being written."""
    path = pathlib.Path(path)
    longest = os.pathconf(path.parent, "PC_NAME_MAX") if hasattr(os, "pathconf") and path.parent.is_dir() else 255
    if len(os.fsencode(path.name + suffix)) > longest:
        raise OSError(f"output {path.name[:40]}... cannot be written: a name may have {longest - len(suffix)} bytes here")
    if path.is_symlink():
        path = pathlib.Path(os.path.realpath(path))
    if path.is_dir():
        raise IsADirectoryError(f"output {path} is a folder; give the name of a file")
    if path.exists() and not path.is_file():
        raise OSError(f"output {path} is neither a new nor an ordinary file (a pipe or a device, perhaps); give the name of a file")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"output {path} cannot be written: there is no folder {path.parent}")
    if not os.access(path.parent, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise PermissionError(f"output {path} cannot be written: no permission")
    return path


def check_ending(argument, path, endings):
    """Refuse a name whose ending says that the file is something else."""
    name = pathlib.Path(path).name
    if not name.lower().endswith(endings):
        known = " or ".join(filter(None, [", ".join(endings[:-1]), endings[-1]]))
        raise ValueError(f"{argument} must be a file whose name ends in {known}, not {name!r:.80}")


def check_room(path, needed):
    """Refuse to write so many bytes where the disk may be full: HDF5 would end the process instead of raising an error."""
    free = shutil.disk_usage(path.parent).free
    if free < needed:
        raise OSError(f"output {path} cannot be written: its disk has only {free / 1e6:.1f} MB left of the {needed / 1e6:.1f} MB needed")


class Reserve:
    """Room on the disk that is ours before anything is written into it. HDF5 cannot go back when a write fails in the middle: the file
    would be lost, and the process might end in a crash."""

    KEEP_SIZE = 1  # of fallocate: blocks beyond the end of the file, which stays where it is

    def __init__(self, path):
        self.path, self.descriptor = path, os.open(path, os.O_WRONLY)

    def ask(self, needed):
        """Refuse with a sentence where so many bytes more cannot be had, be it for the disk, a quota or a limit of the process."""
        size = os.fstat(self.descriptor).st_size
        if resource is not None and 0 <= (most := resource.getrlimit(resource.RLIMIT_FSIZE)[0]) < size + needed:
            raise OSError(f"output {self.path} cannot grow: this process may write files of {most / 1e6:.1f} MB at most")
        if allocate is None:
            return
        ctypes.set_errno(0)
        if allocate(self.descriptor, self.KEEP_SIZE, ctypes.c_long(size), ctypes.c_long(needed)) != 0:
            number = ctypes.get_errno()
            if number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO):
                raise OSError(number, f"output {self.path} cannot be written: {os.strerror(number)}, {needed / 1e6:.1f} MB were asked for")

    def give_back(self):
        """What was not used goes back."""
        os.ftruncate(self.descriptor, os.fstat(self.descriptor).st_size)
        os.close(self.descriptor)


@contextmanager
def replaced(path):
    """A temporary path beside another, which takes its place at the end; removed if something goes wrong. It has the same ending, by which
    some libraries tell formats."""
    path = pathlib.Path(path)
    temporary = path.with_name(f"{path.stem}.part{path.suffix}")
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
