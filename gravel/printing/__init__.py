"""How things print: as text, as tables for pandas and the eye, as pictures in notebooks."""
