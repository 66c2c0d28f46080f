"""Many processes: who owns what (``domain``), bodies that several know (``halo``), and the cone problem between them (``share``)."""
