"""The shell: command line, configuration and wiring. The only package that reads flags, environment and signals."""
