"""The model file: an ordinary zip archive of `model.json` and `.npy` arrays.

It is made so that anyone can open it with unzip and NumPy, that the same model gives the same bytes,
and that a file which was damaged, or made to mislead, is an error and nothing else. Nothing in it is
ever executed.
"""

from abcgbm.errors import ModelFileError
from abcgbm.model.file.document import kept_parameters, set_parameters, split_parameters
from abcgbm.model.file.model_file import ModelContents, checkpoint_state, load, save

__all__ = [
    "ModelContents",
    "ModelFileError",
    "checkpoint_state",
    "kept_parameters",
    "load",
    "save",
    "set_parameters",
    "split_parameters",
]
