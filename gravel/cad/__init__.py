"""CAD files: ``kernel`` asks the CAD kernel in a process of its own, ``step`` starts it and hands its answer on as numbers and arrays."""
