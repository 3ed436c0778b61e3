"""Methods that save, load and export a fitted classifier."""

from __future__ import annotations

import inspect
import json
import os
import warnings
from os import PathLike
from typing import IO, Any, Self

from abcgbm._version import VERSION
from abcgbm.data.files.atomic import write_whole
from abcgbm.fitted import FittedAttributes
from abcgbm.model.export.c_source import c_source
from abcgbm.model.export.json_dump import plain_model
from abcgbm.model.export.onnx_model import onnx_model, register_in_skl2onnx
from abcgbm.model.export.treelite_model import treelite_model
from abcgbm.model.file import ModelContents, kept_parameters, load, save, set_parameters
from abcgbm.model.tree_views import text_of

_VERSION = "_abcgbm_version"  # in the state of a pickle


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
            after loading. ``n_jobs``, ``verbose`` and ``Checkpoint`` callbacks are not kept either, as
            they say nothing of the model.
        """
        model, history = self._model, self._history
        given = self.get_params(deep=False)  # type: ignore[attr-defined]
        parameters = kept_parameters(given, stacklevel=2)
        save(ModelContents(model, history, self.refit_history_, parameters), file)

    @classmethod
    def load_model(cls, file: str | os.PathLike[str] | IO[bytes]) -> Self:
        """Return the classifier that ``save_model`` wrote, or that of the best iteration of a checkpoint.

        Nothing in the file is trusted: all of it is checked before it is used.

        Parameters
        ----------
        file : path, or binary file open for reading
            Where to read it.

        Raises
        ------
        ModelFileError
            If the file is damaged, foreign, or of a newer format, or if it sets what ``fit`` would act
            on: ``n_jobs``, ``verbose``, or ``callbacks`` other than ``TimeLimit`` and
            ``KeepOnInterrupt``.
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

    def __getstate__(self) -> dict[str, Any]:
        """Add the version, without which the pickle is not read."""
        state: dict[str, Any] = super().__getstate__()  # type: ignore[assignment]
        return state | {_VERSION: VERSION}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take the state of a pickle of this version; another one is an error that names it."""
        written_by = state.get(_VERSION)
        if written_by != VERSION:
            by = "before 0.3" if written_by is None else written_by
            raise ValueError(
                f"a pickle of abcgbm {by} is not read by abcgbm {VERSION}; expected a pickle of the same "
                "version, or a file of save_model, which later versions read"
            )
        known = {name: value for name, value in state.items() if name != _VERSION}
        super().__setstate__(known)  # type: ignore[misc]


def _defaults(of: type) -> dict[str, Any]:
    """Return the parameters of an estimator, and what they are by default."""
    parameters = inspect.signature(of).parameters
    return {name: parameter.default for name, parameter in parameters.items()}


AnyPath = str | PathLike[str]


class Exports(FittedAttributes):
    """What an estimator makes of its model for others; see docs/deployment.md.

    A file that exists is replaced at once or, if anything goes wrong, left as it was.
    """

    def to_onnx(self, path: AnyPath | None = None) -> Any:
        """Return the model as an ``onnx.ModelProto``, or write it to a file. Needs ``abcgbm[onnx]``.

        The outputs are ``label`` (a string or an int64: whole floats and truth values become
        integers) and ``probabilities`` (floats), within 1e-6 of ``predict_proba`` of the same
        float32 rows. The input ``X`` is a float32 matrix; if a category has strings as levels,
        there is instead an input of shape (n_rows, 1) for each column, by its name (x0, x1 and so
        on if it has none). NaN is missing, and so is any level that was not learned.

        Parameters
        ----------
        path : str or path-like, optional
            The file; None returns the model.
        """
        exported = onnx_model(self._model)
        if path is None:
            return exported
        write_whole(path, exported.SerializeToString())
        return None

    @classmethod
    def register_onnx(cls) -> None:
        """Teach skl2onnx to convert pipelines that end in this estimator. Needs ``abcgbm[onnx]``.

        What comes before it must give one matrix of numbers: categories are numbered there, such
        as by an OrdinalEncoder.
        """
        register_in_skl2onnx(cls)

    def to_treelite(self) -> Any:
        """Return the model as a ``treelite.Model``. Needs ``abcgbm[treelite]``.

        Thresholds and leaves are of double precision, the postprocessor is softmax. A category is
        given as the code of its level, the place among the levels in ascending order, or NaN.
        """
        return treelite_model(self._model)

    def to_json(self, path: AnyPath | None = None) -> str | None:
        """Return all trees as JSON with names instead of numbers, or write it to a file.

        It is complete: scores computed from it are those of the model, exactly. Steps count from 0.

        Parameters
        ----------
        path : str or path-like, optional
            The file; None returns the text.
        """
        plain = plain_model(self._model)
        return _written(json.dumps(plain, ensure_ascii=False, allow_nan=False), path)

    def to_text(self, path: AnyPath | None = None) -> str | None:
        """Return all trees as text for people, or write it to a file.

        The scores before the first step, then each tree as ``tree`` shows it.

        Parameters
        ----------
        path : str or path-like, optional
            The file; None returns the text.
        """
        return _written(text_of(self._model), path)

    def to_c(self, path: AnyPath | None = None, *, prefix: str = "abcgbm") -> str | None:
        """Return the model as one file of C99 without dependencies, or write it.

        ``int abcgbm_predict(const double *x, double *proba)`` writes the class probabilities and
        returns the number of the most probable class; the head of the file describes the rest.

        Parameters
        ----------
        path : str or path-like, optional
            The file; None returns the text.
        prefix : str, default="abcgbm"
            What the names of its functions begin with.
        """
        return _written(c_source(self._model, prefix), path)


def _written(text: str, path: AnyPath | None) -> str | None:
    if path is None:
        return text
    write_whole(path, text.encode())
    return None
