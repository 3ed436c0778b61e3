"""The systems that are compared: ours with both kinds of trees, and the peers.

``setting.ridge`` is the L2 penalty of our multi-output trees and of the systems in ``WITH_OUR_RIDGE``. Our
single-output trees, and LightGBM unless its name says so, have none.
"""

from dataclasses import dataclass, replace
from typing import Any

from benchmarks import peers
from benchmarks.peers import CatBoost, LightGBM, Ours, Setting, System, XGBoost


@dataclass(frozen=True)
class MultiOutput(Ours):
    """One tree in each iteration; ``directions`` is its ``n_projections``."""

    directions: str | int = "auto"

    def chosen(self, setting: Setting) -> dict[str, Any]:
        return {
            "algorithm": self._import().MultiOutputTrees(
                n_projections=self.directions, baseline="zero"
            ),
            "l2_regularization": setting.ridge,
        }


@dataclass(frozen=True)
class VectorLeaves(XGBoost):
    """XGBoost's vector leaves (>= 3.4), with its own L2 penalty or ours.

    Its hessians are 2 p (1 - p), twice ours, so its steps are about half of ours with an equal L2 penalty and
    learning rate; ``factor`` 2 multiplies both, and makes its leaves equal to ours.
    """

    multi_strategy: str = "multi_output_tree"
    own_ridge: bool = False
    factor: float = 1.0

    def make(self, setting: Setting) -> Any:
        if self.own_ridge:
            return super().make(replace(setting, ridge=1.0))
        scaled = replace(
            setting,
            ridge=self.factor * setting.ridge,
            learning_rate=self.factor * setting.learning_rate,
        )
        return super().make(scaled).set_params(min_child_weight=0.0)


class CatBoostOwnRidge(CatBoost):
    """CatBoost with its default L2 penalty."""

    def make(self, setting: Setting) -> Any:
        return super().make(replace(setting, ridge=3.0))


_ONE_TREE: dict[str, Any] = {"has_tree_per_class": False}
_OURS: tuple[System, ...] = (
    MultiOutput("shared", "abcgbm", "abcgbm", **_ONE_TREE),
    MultiOutput(
        "shared-all", "abcgbm", "abcgbm", "no random projections", **_ONE_TREE, directions="all"
    ),
    *peers.OURS.values(),
)
_XGBOOST = ("xgboost", "xgboost")
_PEERS: tuple[System, ...] = (
    VectorLeaves(
        "XGBoost-vector",
        *_XGBOOST,
        "its defaults, `reg_lambda=1` and `min_child_weight=1`",
        **_ONE_TREE,
        own_ridge=True,
    ),
    VectorLeaves(
        "XGBoost-vector-equal",
        *_XGBOOST,
        "our L2 penalty, `min_child_weight=0`; no minimum number of rows in a leaf",
        **_ONE_TREE,
    ),
    VectorLeaves(
        "XGBoost-vector-doubled",
        *_XGBOOST,
        "the same with L2 penalty and learning rate doubled, as its hessians are: leaves equal to ours",
        **_ONE_TREE,
        factor=2.0,
    ),
    CatBoost("CatBoost", "catboost", "catboost", "our L2 penalty; depth at most 16", **_ONE_TREE),
    CatBoostOwnRidge(
        "CatBoost-own-ridge",
        "catboost",
        "catboost",
        "its default, `l2_leaf_reg=3`; depth at most 16",
        **_ONE_TREE,
    ),
    peers.PEERS["LightGBM"],
    LightGBM("LightGBM-equal", "lightgbm", "lightgbm", "our L2 penalty; one tree per class"),
)
OURS = {system.name: system for system in _OURS}
PEERS = {system.name: system for system in _PEERS}
SYSTEMS = {**OURS, **PEERS}
WITH_OUR_RIDGE = (
    "shared",
    "shared-all",
    "XGBoost-vector-equal",
    "XGBoost-vector-doubled",
    "CatBoost",
    "LightGBM-equal",
)
