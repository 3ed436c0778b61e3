"""Training on several workers: how long a step takes, beside other packages, and what it is made of."""
