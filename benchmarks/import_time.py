"""Compare the time of `import abcgbm` with that of `import sklearn`.

    python benchmarks/import_time.py --limit 1.2

Each import runs in its own process; the two alternate, and the smallest CPU time of each counts. It needs
only the Python and the packages that are measured. Ten turns were too few on a busy machine: ratios of one
build were between 0.98 and 1.21. Run it on an idle machine.
"""

import argparse
import resource
import subprocess
import sys

MODULES = ("abcgbm", "sklearn")


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def seconds_of_import(module: str) -> float:
    before = cpu_seconds()
    subprocess.run([sys.executable, "-I", "-c", f"import {module}"], check=True)
    return cpu_seconds() - before


def smallest_times(n_turns: int) -> dict[str, float]:
    times: dict[str, list[float]] = {module: [] for module in MODULES}
    for _ in range(1 + n_turns):  # the first one reads files and writes byte code
        for module, of in times.items():
            of.append(seconds_of_import(module))
    return {module: min(of[1:]) for module, of in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--turns", type=int, default=40, help="imports of each package (%(default)s)"
    )
    parser.add_argument("--limit", type=float, help="fail if the ratio is above this")
    args = parser.parse_args()
    times = smallest_times(args.turns)
    ratio = times["abcgbm"] / times["sklearn"]
    times = f"the smallest of {args.turns}, " + ", ".join(
        f"import {module}: {1000 * s:.0f} ms" for module, s in times.items()
    )
    print(f"Python {sys.version.split()[0]}: {times} of CPU time; ratio {ratio:.2f}")
    if args.limit is not None and ratio > args.limit:
        sys.exit(f"the ratio is {ratio:.2f}; at most {args.limit} is allowed")


if __name__ == "__main__":
    main()
