"""Moving opaque bytes between nodes: blobs by digest, records by topic, peers by earned trust."""
