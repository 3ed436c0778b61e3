"""Training on rows that several processes hold."""
