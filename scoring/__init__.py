"""Pure rules on numbers: scores, ratings, weights, consensus."""
