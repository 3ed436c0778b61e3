"""A fitted classifier, cut to its first steps."""

from typing import Any, Self

from sklearn.base import clone

from abcgbm.model.history import History
from abcgbm.model.views import FittedAttributes
from abcgbm.settings.checks import check_integer


class Truncation(FittedAttributes):
    """What an estimator with ``model_`` and ``history_`` needs to be cut."""

    def truncate(self, n_steps: int) -> Self:
        """Return a classifier with the first ``n_steps`` steps of this one, which stays as it is.

        It predicts as this one does with ``n_steps=n_steps``, and its record ends there: ``n_iter_``
        and ``best_iter_`` are ``n_steps``, and ``stop_reason_`` is "truncated" if anything was cut. A
        warm start goes on from its last step. ``model[:n_steps]`` is the same; there a negative
        number counts from the end.

        Parameters
        ----------
        n_steps : int
            Steps to keep: 0 to those of the model.
        """
        most = self._model.n_steps
        n_steps = check_integer("n_steps", n_steps, 0, most, note=" (those of the model)")
        cut: Self = clone(self)
        cut.model_ = self.model_.first_steps(n_steps)
        cut.history_ = _first_steps(self.history_, n_steps)
        second = self.refit_history_
        cut.refit_history_ = None if second is None else _first_steps(second, n_steps)
        return cut

    def __getitem__(self, steps: Any) -> Self:
        """Return a classifier with the first steps of this one: ``model[:100]``, ``model[:-5]``."""
        is_slice = isinstance(steps, slice)
        if not is_slice or steps.start not in (None, 0) or steps.step not in (None, 1):
            error = ValueError if is_slice else TypeError
            raise error(
                f"model[{_shown(steps)}]; expected a slice from the first step on, such as [:100]: "
                "a step says nothing without those before it"
            )
        most, stop = self._model.n_steps, steps.stop
        if stop is None:
            return self.truncate(most)
        stop = check_integer("the end of a slice", stop, -most, most, note=" (steps of the model)")
        return self.truncate(stop + most if stop < 0 else stop)

    __iter__ = None  # a classifier is no sequence, though it can be sliced


def _first_steps(history: History, n_steps: int) -> History:
    is_whole = n_steps == history.n_steps
    return history if is_whole else history.first_steps(n_steps, "truncated")


def _shown(steps: Any) -> str:
    if not isinstance(steps, slice):
        return repr(steps)
    parts = [steps.start, steps.stop] + ([] if steps.step is None else [steps.step])
    return ":".join("" if part is None else repr(part) for part in parts)
