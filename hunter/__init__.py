"""The bounty hunter: recomputes what anybody handed in, and is paid for every fraud it proves."""
