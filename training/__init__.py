"""Model, data assignment, inner steps, codec and aggregation."""
