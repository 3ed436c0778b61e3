"""The processes that hold the rows of a training between them: what they sum up, and how."""
