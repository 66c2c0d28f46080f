"""Several processes: who owns what (``domain``), ghosts and migration (``halo``), and the cone problem across ranks (``shared_bodies``)."""
