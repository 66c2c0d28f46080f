"""Collision detection of the CPU engine: bodies to contacts."""
