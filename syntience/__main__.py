"""`python -m syntience` is the command line."""

from syntience.cli import main

main()
