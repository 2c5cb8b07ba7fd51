"""A process that enters rounds until it is killed; run by `test_curves`.

    python -m tests.node.curves_child FILE FIRST

It enters FIRST, FIRST + 1, … and says each one's number once it is entered.
"""

from __future__ import annotations

import sys
from itertools import count
from pathlib import Path

from node.curves import Curves
from tests.syntience.curves.homes import about, training_row

if __name__ == "__main__":
    curves = Curves.open(Path(sys.argv[1]), about("miner"))
    for round_ in count(int(sys.argv[2])):
        curves.add(training_row(round_))
        sys.stdout.write(f"{round_}\n")
        sys.stdout.flush()
