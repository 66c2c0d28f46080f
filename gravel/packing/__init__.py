"""Packings: regions of space, distributions of sizes, bodies packed into regions (``pack``) or fed into them over time (``pour``)."""
