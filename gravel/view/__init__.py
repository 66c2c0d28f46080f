"""Pictures and plots of results; they need the extra: pip install "gravel[view]"."""


def need(module):
    """Import a module of the ``view`` extra, or say how to get it."""
    import importlib

    try:
        return importlib.import_module(module)
    except ImportError:
        raise RuntimeError(f'this needs {module.split(".")[0]}, which is not installed: pip install "gravel[view]"') from None
