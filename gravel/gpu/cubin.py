"""What the machine code of a kernel takes from a GPU, read from the file that the compiler wrote.

A cubin is an ELF file of 64 bits. Its section ``.nv.info`` lists, by symbol, the registers of a thread and the bytes of its stack;
constants (with the arguments) and shared memory of a kernel are the sizes of sections that carry its name.
"""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SECTION = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")
ATTRIBUTE = struct.Struct("<BBH")  # form, what, size or value
ENTRY = struct.Struct("<II")  # symbol, value
WITH_BYTES = 4  # the form of an attribute that is followed by so many bytes
REGISTERS, STACK = 0x2F, 0x12  # of a symbol; the stack with that of functions that it calls


class Usage(NamedTuple):
    registers: int  # of a thread
    stack: int  # bytes of local memory of a thread
    shared: int  # bytes of a block
    constant: int  # bytes of arguments and constants


class Section(NamedTuple):
    name: str
    content: bytes
    size: int  # of a section that has no content in the file, too
    link: int


def read_cubin(path: Path) -> dict[str, Usage]:
    """What each kernel of a file takes, by its name in it."""
    data = Path(path).read_bytes()
    if len(data) < HEADER.size or data[:5] != b"\x7fELF\x02":
        raise ValueError(f"{path} is no cubin: it does not begin as an ELF file of 64 bits does")
    sections = list(_sections(data))
    sizes = {section.name: section.size for section in sections}
    (info,) = [section for section in sections if section.name == ".nv.info"]
    symbols = _symbols(sections, info.link)
    registers, stack = _values(info.content, REGISTERS), _values(info.content, STACK)
    return {
        symbols[k]: Usage(count, stack.get(k, 0), sizes.get(f".nv.shared.{symbols[k]}", 0), sizes.get(f".nv.constant0.{symbols[k]}", 0))
        for k, count in registers.items()
    }


def _text(data: bytes, at: int) -> str:
    return data[at : data.index(b"\0", at)].decode()


def _sections(data: bytes) -> Iterator[Section]:
    header = HEADER.unpack_from(data)
    first, size, count, names = header[6], *header[11:14]
    rows = [SECTION.unpack_from(data, first + k * size) for k in range(count)]
    for name, kind, _, _, offset, length, link, *_ in rows:
        nothing = kind == 8  # memory that is reserved only
        yield Section(_text(data, rows[names][4] + name), b"" if nothing else data[offset : offset + length], length, link)


def _symbols(sections: list[Section], table: int) -> list[str]:
    names = sections[sections[table].link].content
    return [_text(names, row[0]) for row in SYMBOL.iter_unpack(sections[table].content)]


def _values(info: bytes, wanted: int) -> dict[int, int]:
    """An attribute by symbols."""
    found, at = {}, 0
    while at < len(info):
        form, what, size = ATTRIBUTE.unpack_from(info, at)
        at += ATTRIBUTE.size
        if form == WITH_BYTES:
            if what == wanted:
                symbol, value = ENTRY.unpack_from(info, at)
                found[symbol] = value
            at += size
    return found
