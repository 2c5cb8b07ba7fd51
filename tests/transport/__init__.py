"""Tests of transport: real sockets on 127.0.0.1, and peers that misbehave."""
