"""Joints of the CPU engine: gauges, laws, rows, and their direct solution."""
