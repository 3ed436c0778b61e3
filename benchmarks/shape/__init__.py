"""Code size, and the code that a call runs: numbers for a review, not for a test."""
