"""Moving blobs by digest."""
