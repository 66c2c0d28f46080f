"""The CPU engine, in Numba. The stages of a step, each in the file of its name; ``engine.py`` puts them in order."""

from gravel.host.threads import choose_layer
from gravel.kernel_cache import install

choose_layer()
install()
