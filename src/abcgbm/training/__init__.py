"""Binned rows become a model."""
