"""The validator: scores submissions and attests what it holds."""
