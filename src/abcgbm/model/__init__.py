"""What is left of a training: the model, and the record of how it came about."""
