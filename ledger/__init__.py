"""The only door to the chain."""
