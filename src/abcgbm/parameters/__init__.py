"""Parameters of the estimators: validated once, frozen, read by all other packages."""
