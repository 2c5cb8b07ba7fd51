"""How patient a node is with its peers."""

from __future__ import annotations

from dataclasses import replace

import pytest

from node.node import client_limits
from tests.specs import SPEC
from transport.limits import ClientLimits


@pytest.mark.parametrize("window", ["publish_s", "attest_s", "apply_s"])
def test_client_limits__short_windows__a_peer_that_stalls_costs_a_quarter_of_the_shortest(
    window: str,
) -> None:
    chain = replace(SPEC.chain, publish_s=40, attest_s=40, apply_s=40)
    limits = client_limits(replace(chain, **{window: 12}), local=True)  # type: ignore[arg-type]
    assert limits.request_timeout_s == limits.transfer_grace_s == limits.read_timeout_s == 3
    assert limits.allow_private


def test_client_limits__windows_of_hours__stays_at_what_is_usual() -> None:
    chain = replace(SPEC.chain, publish_s=3600, attest_s=3600, apply_s=3600)
    assert client_limits(chain, local=False) == ClientLimits()
