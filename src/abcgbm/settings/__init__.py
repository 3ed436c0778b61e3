"""What the user gave: checked once, frozen, read by all other rooms."""
