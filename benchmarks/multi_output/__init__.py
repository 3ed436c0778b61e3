"""Compare multi-output trees with one tree per class and with the peers."""
