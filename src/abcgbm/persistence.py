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
    """Model files and pickles of a fitted classifier."""

    def save_model(self, file: str | os.PathLike[str] | IO[bytes]) -> None:
        """Save the model to a file for ``load_model``.

        The file is a zip archive of ``model.json`` and ``.npy`` arrays; loading it executes no code.
        The same model always gives the same bytes. An existing file is replaced atomically.

        Parameters
        ----------
        file : path, or binary file open for writing
            Destination.

        Warns
        -----
        UserWarning
            If a parameter, such as a callable, cannot be saved; it has its default after loading.
            ``n_jobs``, ``verbose`` and ``Checkpoint`` callbacks are never saved, as they do not belong
            to the model.
        """
        model, history = self._model, self._history
        given = self.get_params(deep=False)  # type: ignore[attr-defined]
        parameters = kept_parameters(given, stacklevel=2)
        save(ModelContents(model, history, self.refit_history_, parameters), file)

    @classmethod
    def load_model(cls, file: str | os.PathLike[str] | IO[bytes]) -> Self:
        """Load a classifier from a model file, or from a checkpoint at its best iteration.

        The file need not be trusted: all of it is validated before use.

        Parameters
        ----------
        file : path, or binary file open for reading
            Source.

        Raises
        ------
        ModelFileError
            If the file is damaged, of another program or of a newer format, or if it sets parameters
            with which ``fit`` has side effects: ``n_jobs``, ``verbose``, or ``callbacks`` other than
            ``TimeLimit`` and ``KeepOnInterrupt``.
        """
        saved = load(file)
        known, parameters = _defaults(cls), set_parameters(saved.parameters)
        unknown = sorted(parameters.keys() - known)
        if unknown:
            warnings.warn(
                f"the file has parameters that abcgbm {VERSION} does not have: {unknown}; they are ignored",
                UserWarning,
                stacklevel=2,
            )
        classifier = cls(**{name: parameters[name] for name in known.keys() & parameters.keys()})
        classifier.model_, classifier.history_, classifier.refit_history_ = saved.fitted()
        return classifier

    def __getstate__(self) -> dict[str, Any]:
        """Add the version, which ``__setstate__`` checks."""
        state: Any = super().__getstate__()
        return {**state, _VERSION: VERSION}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore the state from a pickle of the same version; raise ValueError for any other."""
        written_by = state.get(_VERSION)
        if written_by != VERSION:
            by = "before 0.3" if written_by is None else written_by
            raise ValueError(
                f"the pickle is of abcgbm {by}, this is {VERSION}; expected a pickle of the same version, or "
                "a file of save_model, which later versions read"
            )
        known = {name: value for name, value in state.items() if name != _VERSION}
        super().__setstate__(known)  # type: ignore[misc]


def _defaults(of: type) -> dict[str, Any]:
    """Return the parameters of an estimator with their defaults."""
    parameters = inspect.signature(of).parameters
    return {name: parameter.default for name, parameter in parameters.items()}


AnyPath = str | PathLike[str]


class Exports(FittedAttributes):
    """Exports of a fitted classifier to other formats; see docs/deployment.md.

    Existing files are replaced atomically.
    """

    def to_onnx(self, path: AnyPath | None = None) -> Any:
        """Return the model as an ``onnx.ModelProto``, or write it to a file (extra ``abcgbm[onnx]``).

        The input ``X`` is a float32 matrix. If any categories are strings, there is instead one input
        of shape (n_rows, 1) per column, with the name of the column (x0, x1 and so on without names).
        NaN is a missing value, and unknown categories count as missing. The outputs are ``label``
        (strings or int64; booleans and integral floats become integers) and ``probabilities``
        (float32), within 1e-6 of ``predict_proba`` of the same float32 rows.

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
        """Register converters in skl2onnx, for pipelines with this classifier (extra ``abcgbm[onnx]``).

        The preceding steps must return one numeric matrix, with categories encoded for example by an
        OrdinalEncoder.
        """
        register_in_skl2onnx(cls)

    def to_treelite(self) -> Any:
        """Return the model as a ``treelite.Model`` (extra ``abcgbm[treelite]``).

        Thresholds and leaf values have double precision, and the postprocessor is softmax. Categories
        are given as codes: positions in the sorted categories, or NaN for missing and unknown ones.
        """
        return treelite_model(self._model)

    def to_json(self, path: AnyPath | None = None) -> str | None:
        """Return all trees as JSON with labels, feature names and categories, or write it to a file.

        The dump is complete: scores computed from it equal those of the model. Iterations count from 0.

        Parameters
        ----------
        path : str or path-like, optional
            The file; None returns the text.
        """
        plain = plain_model(self._model)
        return _written(json.dumps(plain, ensure_ascii=False, allow_nan=False), path)

    def to_text(self, path: AnyPath | None = None) -> str | None:
        """Return the baseline and all trees as readable text, or write it to a file.

        Parameters
        ----------
        path : str or path-like, optional
            The file; None returns the text.
        """
        return _written(text_of(self._model), path)

    def to_c(self, path: AnyPath | None = None, *, prefix: str = "abcgbm") -> str | None:
        """Return the model as one C99 source file without dependencies, or write it to a file.

        ``int abcgbm_predict(const double *x, double *proba)`` writes the class probabilities and
        returns the index of the most probable class; a comment at the top of the file describes all
        functions.

        Parameters
        ----------
        path : str or path-like, optional
            The file; None returns the text.
        prefix : str, default="abcgbm"
            Prefix of all names in the file.
        """
        return _written(c_source(self._model, prefix), path)


def _written(text: str, path: AnyPath | None) -> str | None:
    if path is None:
        return text
    write_whole(path, text.encode())
    return None
