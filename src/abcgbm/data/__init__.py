"""Input tables, labels and weights; binning."""
