"""Wheels that carry compiled kernels: with GRAVEL_KERNELS=FILE, a file that ``gravel compile --export`` wrote becomes part of the wheel,
which is then for this Python and platform only."""

import os

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Kernels(BuildHookInterface):
    def initialize(self, version, build_data):
        kernels = os.environ.get("GRAVEL_KERNELS")
        if not kernels or version == "editable":
            return
        if not os.path.isfile(kernels):
            raise FileNotFoundError(f"GRAVEL_KERNELS must be a file that `gravel compile --export` wrote, not {kernels!r}")
        build_data["force_include"][os.path.abspath(kernels)] = "gravel/kernels.zip"
        build_data["pure_python"], build_data["infer_tag"] = False, True
