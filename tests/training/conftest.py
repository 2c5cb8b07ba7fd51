"""What holds for numeric tests: one thread, as in every role, and no deadline per example, for the cores are shared."""

from __future__ import annotations

import torch
from hypothesis import settings

torch.set_num_threads(1)
settings.register_profile("numerics", deadline=None)
settings.load_profile("numerics")
