"""Contact detection without a simulation: all contacts at once, box by box of space, rays and boxes."""
