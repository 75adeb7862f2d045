"""`python -m eventide.cli`: the command without its installed name."""

from eventide.cli import main

main()
