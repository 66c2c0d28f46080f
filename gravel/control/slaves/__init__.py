"""What stands in a co-simulation unit and is called by it: one script for each version of FMI. A unit holds a copy of its script."""
