"""A cost model of an iteration on many workers, fitted to measurements.

    python -m benchmarks.distributed.costs measure     # takes 15 minutes on two idle cores
    python -m benchmarks.distributed.costs show

``measure`` runs iterations of the core on one and on two MPI ranks and appends the times to
results/distributed_costs.jsonl. ``show`` fits the model to all jobs except held-out ones, compares it with
those, and prints its prediction for 10^9 rows on 100 workers.
"""

import argparse
import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import nnls

RESULTS = Path(__file__).parents[1] / "results" / "distributed_costs.jsonl"
N_BINS = 256
CACHE = 10e6  # approximate bytes of codes that stay in the cache
HELD_OUT = {"n_rows": 5_000_000, "n_features": 50, "n_classes": 7, "max_leaf_nodes": 64}

Job = dict[str, Any]


def jobs() -> list[Job]:
    """Return the jobs to which the model is fitted: one number is varied at a time."""
    centre = {"n_rows": 500_000, "n_features": 20, "n_classes": 7, "max_leaf_nodes": 64}
    varied: dict[str, tuple[int, ...]] = {
        "n_rows": (250_000, 1_000_000, 4_000_000),
        "n_features": (10, 50),
        "n_classes": (3, 20),
        "max_leaf_nodes": (16, 256),
    }
    changed = [centre | {name: n} for name, numbers in varied.items() for n in numbers]
    return [job | {"shared": s} for s in (False, True) for job in [centre, *changed]]


# --------------------------------------------------------------------------------------- the model


class Cost(NamedTuple):
    """Amounts of work of a rank in an iteration, in units independent of the machine."""

    names: tuple[str, ...]
    amounts: np.ndarray


def computing(job: Job, n_ranks: int) -> Cost:
    """Return the amounts of work of a rank. A tree of J leaves visits a row about log2 J times."""
    rows = job["n_rows"] / n_ranks
    D, K, J = job["n_features"], job["n_classes"], job["max_leaf_nodes"]
    visits, trees = rows * math.log2(J), 1 if job["shared"] else K
    outside = max(0.0, 1.0 - CACHE / (rows * D))  # fraction of the codes that are not in the cache
    amounts = {
        "counting: rows x columns x log2 J x trees": visits * D * trees,
        "fetching: those that are not in the cache": visits * D * trees * outside,
        "splitting: rows x log2 J x trees": visits * trees,
        "scores: rows x classes": rows * K,
        "searching: leaves x columns x bins x trees": J * D * N_BINS * trees,
    }
    return Cost(tuple(amounts), np.array([*amounts.values()], dtype=float))


def bytes_of_step(job: Job) -> float:
    """Return the bytes that each rank sums: a histogram for each split, and the roots."""
    D, K, J = job["n_features"], job["n_classes"], job["max_leaf_nodes"]
    if job["shared"]:
        n_projections = min(7, K)
        stride = -(-(2 * n_projections + 1) // 8) * 8
        return J * D * N_BINS * stride * 4.0
    return (J - 1) * D * N_BINS * 24.0 * K + 2 * 64.0 * -(-K // 8) * D * N_BINS


def rounds_of_step(job: Job) -> float:
    """Return the number of exchanges, about sqrt(8 J) as histograms of leaves are built ahead."""
    return math.sqrt(8 * job["max_leaf_nodes"]) + 6


class Model(NamedTuple):
    """Seconds per amount of work, exchange and byte."""

    computing: dict[bool, np.ndarray]  # by whether trees are multi-output
    of_round: float
    of_byte: float

    def predict(self, job: Job, n_ranks: int) -> tuple[float, float]:
        """Return the seconds of computation and of exchanges in an iteration."""
        amounts = computing(job, n_ranks).amounts
        of_exchange = rounds_of_step(job) * self.of_round + bytes_of_step(job) * self.of_byte
        return float(amounts @ self.computing[job["shared"]]), of_exchange * (n_ranks > 1)


def fit(measured: list[Job]) -> Model:
    """Fit the model by relative errors."""
    by_kind = {}
    for shared in (False, True):
        alone = [m for m in measured if m["n_ranks"] == 1 and m["shared"] == shared]
        seconds = np.array([m["seconds"] for m in alone])
        amounts = np.array([computing(m, 1).amounts for m in alone])
        by_kind[shared], _ = nnls(amounts / seconds[:, None], np.ones(len(alone)))
    together = [m for m in measured if m["n_ranks"] > 1]
    rest = np.array(
        [max(m["seconds"] - computing(m, 2).amounts @ by_kind[m["shared"]], 1e-4) for m in together]
    )
    seconds = np.array([m["seconds"] for m in together])
    amounts = np.array([[rounds_of_step(m), bytes_of_step(m)] for m in together])
    (of_round, of_byte), _ = nnls(amounts / seconds[:, None], rest / seconds)
    return Model(by_kind, float(of_round), float(of_byte))


# -------------------------------------------------------------------------------------- measuring


def run(job: Job, n_ranks: int) -> Job:
    command = [
        str(Path(sys.executable).with_name("mpirun")),
        "--allow-run-as-root",
        "-n",
        str(n_ranks),
    ]
    command += [sys.executable, "-m", "benchmarks.distributed.steps", json.dumps(job)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def measure() -> None:
    held_out = [HELD_OUT | {"shared": shared, "n_steps": 1} for shared in (False, True)]
    with RESULTS.open("w") as results:
        for job in [*jobs(), *held_out]:
            for n_ranks in (1, 2):
                results.write(json.dumps(run(job, n_ranks)) + "\n")
                results.flush()


# ----------------------------------------------------------------------------------------- showing


def is_held_out(job: Job) -> bool:
    return all(job[name] == n for name, n in HELD_OUT.items())


def show() -> None:
    measured = [json.loads(line) for line in RESULTS.read_text().splitlines()]
    model = fit([m for m in measured if not is_held_out(m)])
    for shared, coefficients in model.computing.items():
        names = computing(HELD_OUT | {"shared": shared}, 1).names
        print(f"\n{'multi-output trees' if shared else 'one tree per class'}: nanoseconds of")
        for name, seconds in zip(names, coefficients, strict=True):
            print(f"  {name:45} {seconds * 1e9:8.3f}")
    print(
        f"\nan exchange: {model.of_round * 1e3:.3f} ms, and {model.of_byte * 1e9:.3f} ns a byte\n"
    )
    print(
        "rows x columns x classes, leaves, trees, ranks: measured, predicted seconds per iteration"
    )
    for m in measured:
        what = f"{m['n_rows']}x{m['n_features']}x{m['n_classes']} J={m['max_leaf_nodes']}"
        kind = "shared" if m["shared"] else "per class"
        total = sum(model.predict(m, m["n_ranks"]))
        held = "held out" if is_held_out(m) else ""
        print(
            f"  {what:25} {kind:9} {m['n_ranks']}  {m['seconds']:8.3f} {total:8.3f} {total / m['seconds']:5.2f} {held}"
        )
    _extrapolate(model)


def _extrapolate(model: Model) -> None:
    """10^9 rows x 100 columns x 100 classes on 100 workers with 10 Gbit/s and 100 us."""
    network = model._replace(of_round=2 * 100e-6 * math.log2(100), of_byte=2 * 0.8e-9)
    print("\n10^9 x 100 x 100, 64 leaves, 100 workers of one core: seconds per iteration")
    for shared in (False, True):
        job = {
            "n_rows": 10**9,
            "n_features": 100,
            "n_classes": 100,
            "max_leaf_nodes": 64,
            "shared": shared,
        }
        of_work, of_exchange = network.predict(job, 100)
        cost = computing(job, 100)
        parts = cost.amounts * model.computing[shared]
        print(
            f"  {'shared' if shared else 'per class'}: computing {of_work:.1f}, exchanges {of_exchange:.2f} "
            f"({bytes_of_step(job) / 1e9:.2f} GB)"
        )
        for name, seconds in zip(cost.names, parts, strict=True):
            print(f"    {name:45} {seconds:8.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("what", choices=["measure", "show"])
    {"measure": measure, "show": show}[parser.parse_args().what]()


if __name__ == "__main__":
    main()
