"""The devnet: a whole subnet on this machine, from an empty chain to rewards that were claimed.

It starts a local chain and every role as a process of its own, exactly as an operator would start
it, and then only looks on: what it shows and reports comes from the chain and from the nodes'
public boards.
"""
