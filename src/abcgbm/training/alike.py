"""What must be the same on all ranks before they begin."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from abcgbm.data.digest import digest_of
from abcgbm.ranks.share import Share
from abcgbm.ranks.together import gathered
from abcgbm.settings.settings import Settings
from abcgbm.settings.version import VERSION
from abcgbm.training.checkpoint import Checkpoint
from abcgbm.training.facts import FREE
from abcgbm.training.start import EarlierFit

_OTHERWISE = ("random_state", "scoring")  # rank 0 draws for all; told by its name


def check_same_settings(
    settings: Settings, earlier: EarlierFit | None, resumed: Checkpoint | None, share: Share
) -> None:
    """Raise ValueError, on all ranks, unless they have the same parameters and go on from the same."""
    if share.is_alone:
        return
    told = gathered(share, lambda: (share.name, _told(settings, earlier, resumed)))
    first, expected = told[0]
    for rank, of_rank in told:
        for name, value in of_rank.items():
            if value != expected[name]:
                raise ValueError(
                    f"{name} is {value} on {rank}, {expected[name]} on {first}; expected the same"
                )


def _told(
    settings: Settings, earlier: EarlierFit | None, resumed: Checkpoint | None
) -> dict[str, Any]:
    if settings.scoring.scorer is not None:
        raise ValueError(
            f"scoring={settings.scoring.given!r} where several ranks share rows; expected 'loss' or "
            "'error': no rank has all rows that a scorer would see"
        )
    names = [f.name for f in fields(settings) if f.name not in (*FREE, *_OTHERWISE)]
    parameters = {name: repr(getattr(settings, name)) for name in ("max_iter", *names)}
    return {
        "the version of abcgbm": VERSION,
        **parameters,
        "scoring": repr(settings.scoring.given),
        "the model to go on from": None if earlier is None else digest_of(earlier.model),
        "resume_from": None if resumed is None else digest_of([resumed.facts, resumed.model]),
    }
