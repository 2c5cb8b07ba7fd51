"""What the three roles share."""
