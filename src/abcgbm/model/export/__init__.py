"""Exports to ONNX, treelite, C source and JSON."""
