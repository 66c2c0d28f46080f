"""What runs a simulation beside its engine: settings and their checks, sleep, the run and its sweeps, the processes that share it."""
