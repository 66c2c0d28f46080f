"""`python -m gravel` is the command `gravel`."""

from gravel.cli import main

main()
