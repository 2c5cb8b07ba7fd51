"""What holds for numeric tests: one thread, as in every role."""

from __future__ import annotations

import torch

torch.set_num_threads(1)
