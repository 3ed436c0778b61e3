"""How fast, how large: the package beside its peers. Not part of the package."""
