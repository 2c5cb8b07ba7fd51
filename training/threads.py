"""How many threads the numerics may use. One per process is the rule: roles share cores, and bits of gradients depend on the count."""

from __future__ import annotations

import torch


def pin_threads(count: int) -> None:
    """Fixes torch's intra-op and inter-op threads to `count` and keeps subnormal numbers (IEEE behaviour).

    Call it once, before the first tensor operation: torch refuses a later change of the inter-op pool.
    """
    if count < 1:
        raise ValueError(f"thread count must be at least 1, not {count}")
    torch.set_num_threads(count)
    if torch.get_num_interop_threads() != count:
        torch.set_num_interop_threads(count)
    torch.set_flush_denormal(False)
