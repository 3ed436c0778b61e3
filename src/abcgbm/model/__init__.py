"""Fitted models: trees, training history, explanations, files and exports."""
