"""Formulas as plain functions of numbers, written once for every engine: each compiles them for its device."""
