"""The CPU engine, in Numba. The stages of a step, each in the file of its name; ``engine.py`` puts them in order."""

from gravel.cpu.threads import choose_layer

choose_layer()
