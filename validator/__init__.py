"""The validator: fetches, checks, attests, scores, and settles what miners handed in."""
