"""Scene files: YAML for those who do not program (docs/SCENE_FILES.md).

In comes a text; ``text`` makes items with lines of it, ``language`` (the one table of all keys) checks them, ``build`` makes the ``Scene``,
``load`` the whole setup. ``write`` goes the other way, from a ``Scene`` to a file. What is wrong is told by line and key (``faults``).
"""

from gravel.scenefile.diagnostics import Fault, SceneFileError
from gravel.scenefile.load import FileSetup, is_scene_file, load_scene_file

__all__ = ["Fault", "FileSetup", "SceneFileError", "is_scene_file", "load_scene_file"]
