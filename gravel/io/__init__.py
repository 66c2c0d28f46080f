"""Files: results (VTKHDF), checkpoints, friction-contact problems (FCLIB)."""
