"""Other packages on files that are larger than memory, each in a module of its own."""
