"""The vocabulary: what is signed, hashed and compared."""
