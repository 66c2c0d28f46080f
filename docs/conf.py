"""The documentation site: ``sphinx-build -W --keep-going -b html docs build/docs``. What it needs: pip install "gravel[docs]".
With ``-D run_notebooks=1`` the notebooks are run, and their pages show what they give.

Nothing is loaded from another host when a page is looked at: equations become MathML here, fonts are the system's, search is local.
"""

import pathlib
import sys

HERE = pathlib.Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE / "_ext")]

import gravel  # noqa: E402

project, author, release = "gravel", "The gravel developers", gravel.__version__
project_copyright = author
extensions = ["myst_parser", "sphinx.ext.autodoc", "mathml", "notebooks", "public_names", "repository_links"]
myst_enable_extensions = ["dollarmath", "amsmath", "deflist", "colon_fence"]
myst_heading_anchors = 3
exclude_patterns = ["_build", "_static", "_ext"]
suppress_warnings = ["toc.empty_glob", "autosectionlabel.*"]  # places for pages that are not there yet
html_theme, html_title = "furo", f"gravel {release}"
html_static_path, html_css_files = ["_static"], ["gravel.css"]
html_math_renderer = "mathml"
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True
add_module_names = False
pygments_style, pygments_dark_style = "tango", "native"
