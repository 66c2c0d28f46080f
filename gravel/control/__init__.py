"""Machines in the hands of controllers: co-simulation units (FMI) and environments for training (gymnasium).

Both speak of the same variables (``variables``), drive the same ``Plant`` (a simulation with its observers, whose state can be kept and
taken up again) and take the same sources of it (``sources``). docs/CONTROL.md
"""
