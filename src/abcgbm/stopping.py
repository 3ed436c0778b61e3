"""When training stops."""

# The summed loss below which nothing is left to fit: "machine accuracy" of the paper.
MACHINE_ACCURACY = 2e-14


def stop_reason(n_steps: int, loss: float, max_iter: int) -> str | None:
    """Return why training stops before its next step, or None if it goes on.

    A third reason, ``"no_progress"``, is known only after a step: no tree of it splits, or the
    guard shortened it to nothing.
    """
    if loss < MACHINE_ACCURACY:
        return "machine_accuracy"
    if n_steps >= max_iter:
        return "max_iter"
    return None
