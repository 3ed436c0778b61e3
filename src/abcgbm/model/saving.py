"""A classifier to a file and back: the model file, and pickles of other versions."""

import inspect
import os
import warnings
from typing import IO, Any, Self

from abcgbm.model.file import Saved, kept_parameters, load, save, set_parameters
from abcgbm.model.views import FittedAttributes


class ModelFiles(FittedAttributes):
    """What an estimator with ``model_`` and ``history_`` needs to outlive its process."""

    def save_model(self, file: str | os.PathLike[str] | IO[bytes]) -> None:
        """Write the model to a file, which ``load_model`` reads again.

        The file is a zip archive of ``model.json`` and ``.npy`` arrays, and nothing in it is ever
        executed. The same model gives the same bytes. A file of that name is replaced at once or, if
        anything goes wrong, left as it was.

        Parameters
        ----------
        file : path, or binary file open for writing
            Where to write it.

        Warns
        -----
        UserWarning
            If a parameter, such as a callable, cannot be held; it is named, and has its default
            after loading. ``n_jobs``, ``verbose`` and ``checkpoint`` are not kept either, as they
            say nothing of the model.
        """
        model, history = self._model, self._history
        given = self.get_params(deep=False)  # type: ignore[attr-defined]
        parameters = kept_parameters(given, stacklevel=2)
        save(Saved(model, history, self.refit_history_, parameters), file)

    @classmethod
    def load_model(cls, file: str | os.PathLike[str] | IO[bytes]) -> Self:
        """Return the classifier that ``save_model`` wrote, or that of the best step of a checkpoint.

        Nothing in the file is trusted: all of it is checked before it is used.

        Parameters
        ----------
        file : path, or binary file open for reading
            Where to read it.

        Raises
        ------
        ModelFileError
            If the file is damaged, foreign, or of a newer format, or if it sets what ``fit`` would act
            on: ``n_jobs``, ``verbose``, ``callbacks``, ``checkpoint`` or ``checkpoint_every``.
        """
        saved = load(file)
        known, parameters = _defaults(cls), set_parameters(saved.parameters)
        unknown = sorted(parameters.keys() - known)
        if unknown:
            warnings.warn(
                f"the file has parameters that this version of abcgbm does not know: {unknown}; "
                "they are left out",
                UserWarning,
                stacklevel=2,
            )
        classifier = cls(**{name: parameters[name] for name in known.keys() & parameters.keys()})
        classifier.model_, classifier.history_, classifier.refit_history_ = saved.fitted()
        return classifier

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the state of a pickle; what its version did not know yet is as it is by default."""
        missing = _defaults(type(self)) | ({"refit_history_": None} if "model_" in state else {})
        super().__setstate__(missing | state)  # type: ignore[misc]


def _defaults(of: type) -> dict[str, Any]:
    """Return the parameters of an estimator, and what they are by default."""
    parameters = inspect.signature(of).parameters
    return {name: parameter.default for name, parameter in parameters.items()}
