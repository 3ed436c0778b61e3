"""Training on several workers: the time of an iteration, compared with other packages, and its parts."""
