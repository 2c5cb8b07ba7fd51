"""The bounty hunter: recomputes work and proves fraud."""
