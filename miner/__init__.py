"""The miner: trains on what it is assigned, commits, publishes, and keeps its local state."""
