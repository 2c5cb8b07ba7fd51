"""The command line. `syntience.cli:main` is the installed program."""

from syntience.cli.app import main

__all__ = ["main"]
