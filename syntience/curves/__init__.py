"""What becomes of the rows that nodes keep of their rounds (`node.curves`): a report, a picture, TensorBoard files."""
