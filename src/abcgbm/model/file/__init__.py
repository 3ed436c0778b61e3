"""Model files: zip archives of `model.json` and `.npy` arrays.

unzip and NumPy can open them. The same model always gives the same bytes. A damaged or malicious file
raises ModelFileError; nothing in a file is ever executed.
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
