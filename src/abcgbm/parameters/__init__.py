"""Parameters of the estimators: validated once and immutable, read by all packages above."""
