"""The comparison of `abcgbm demo`, and the paper's statistics."""
