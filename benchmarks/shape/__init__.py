"""How much code there is and how much of it a call passes: numbers for a review, not for a test."""
