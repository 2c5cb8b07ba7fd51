"""The miner: trains on assigned data and publishes its update."""
