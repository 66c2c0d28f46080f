"""The cone problem of the CPU engine: contacts to impulses and velocities."""
