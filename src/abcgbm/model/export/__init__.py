"""A model in other forms: ONNX, treelite, C, and dumps that people read."""
