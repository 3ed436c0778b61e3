"""One benchmark per stage, on tables shaped like some of the paper's.

``python -m pytest benchmarks --benchmark-enable`` times them; without it each stage runs once, on a
few rows. Either way the result of the stage is checked.
"""
