"""What tests of scenes and files call the same."""

import dataclasses


def assert_same_materials(given, read):
    """Values are the same, and so are names; what had none is called by the file."""
    for one, other in zip(given, read, strict=True):
        assert other == dataclasses.replace(one, name=one.name or other.name)
