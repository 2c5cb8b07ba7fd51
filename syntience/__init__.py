"""The shell: command line, configuration and wiring."""
