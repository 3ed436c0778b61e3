"""Training: from the arguments of fit to a model."""
