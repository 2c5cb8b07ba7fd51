"""The vocabulary of Syntience: everything that is signed, hashed, compared or agreed on.

Pure by contract: no I/O, no clock, no randomness, no torch, no web3. Every other package imports
this one and this one imports none of them.
"""
