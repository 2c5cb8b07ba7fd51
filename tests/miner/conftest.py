"""No test in this folder uses the network."""

from tests.sockets import no_sockets

__all__ = ["no_sockets"]
