"""Shared trees, one a step for all classes, beside trees per class and beside the peers."""
