"""Figures of the page, made with matplotlib."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.analysis import CLOCKS, Curves, Values, error_curves, grids, slope
from benchmarks.peers import OURS, PEERS, SYSTEMS
from benchmarks.results import Results
from benchmarks.sets import in_order

COLOURS = {system: f"C{number}" for number, system in enumerate(SYSTEMS)}
TITLES = {1: "1 thread, CPU time", 2: "2 threads, wall time"}
AXES = {"N": "rows", "D": "features", "K": "classes"}


def save_all(results: Results, folder: Path) -> None:
    """Write the figures for which there are results."""
    drawings = {"overview": overview, "training": training, "errors": errors, "scaling": scaling}
    for name, draw in drawings.items():
        figure = draw(results)
        if figure is not None:
            figure.savefig(folder / f"benchmarks_{name}.png", dpi=110)


def overview(results: Results) -> Any:
    """Draw training time relative to ours in one panel, the chart of the README."""
    seconds = results.table("training", "cpu", 1)
    if not _has([seconds], "mart"):
        return None
    figure, panels = _panels(1, 1)
    figure.set_size_inches(10.0, 3.8)
    panel = panels[0, 0]
    _bars(panel, seconds, "mart")
    panel.set_title("Training on one thread with the same iterations, leaves and bins")
    panel.set_ylabel("CPU time relative to abcgbm")
    panel.set_xlabel("data set (generated ones: rows x features x classes)", fontsize="small")
    _legend_below(figure, panel)
    return figure


def training(results: Results) -> Any:
    """Draw bars of each peer's time over ours, a panel for each algorithm and number of threads."""
    values = {threads: results.table("training", of, threads) for threads, of in CLOCKS.items()}
    algorithms = [name for name in ("mart", "abc-mart") if _has(values.values(), name)]
    if not algorithms:
        return None
    figure, panels = _panels(len(algorithms), len(CLOCKS), sharey=True)
    for row, ours in zip(panels, algorithms, strict=True):
        for panel, (threads, of_threads) in zip(row, values.items(), strict=True):
            _bars(panel, of_threads, ours)
            panel.set_title(f"{ours}: {TITLES[threads]}")
    _legend_below(figure, panels[0, 0])
    return figure


def _has(tables: Any, system: str) -> bool:
    return any(of == system for table in tables for _, of in table)


def _bars(panel: Any, values: Values, ours: str) -> None:
    names = in_order({name for name, system in values if system == ours})
    for number, peer in enumerate(PEERS):
        places = [place for place, name in enumerate(names) if (name, peer) in values]
        panel.bar(
            [place + (number - 2) * 0.16 for place in places],
            [values[names[place], peer] / values[names[place], ours] for place in places],
            width=0.16,
            label=peer,
            color=COLOURS[peer],
        )
    panel.axhline(1.0, color="black", linewidth=0.8)
    panel.set_yscale("log")
    _label_plainly(panel.yaxis)
    panel.set_xticks(range(len(names)), names, rotation=30, ha="right")
    panel.set_ylabel("peer's time / ours")


def errors(results: Results) -> Any:
    """Draw test errors against CPU seconds of training, a panel for each set."""
    curves = error_curves(results)
    fits = results.table("training", "cpu", 1)
    names = [name for name in in_order(curves) if any(of == name for of, _ in fits)]
    if not names:
        return None
    n_columns = min(3, len(names))
    figure, panels = _panels(-(-len(names) // n_columns), n_columns)
    for panel in panels.flat[len(names) :]:
        panel.set_visible(False)
    for panel, name in zip(panels.flat, names, strict=False):
        taken = {system: fits[name, system] for system in curves[name] if (name, system) in fits}
        _error_lines(panel, curves[name], taken)
        panel.set_title(name)
    _legend_below(figure, panels[0, 0])
    return figure


def _error_lines(panel: Any, curves: Curves, taken: Mapping[str, float]) -> None:
    for system in (system for system in SYSTEMS if system in taken):
        counts = curves[system]
        seconds = [taken[system] * step / len(counts) for step in range(1, len(counts) + 1)]
        style = "-" if system in OURS else "--"
        panel.plot(seconds, counts, style, color=COLOURS[system], label=system, linewidth=1.2)
    _make_logarithmic(panel)
    panel.set_xlabel("CPU seconds, 1 thread")
    panel.set_ylabel("test errors")


def scaling(results: Results) -> Any:
    """Draw training time against each varied number, both axes logarithmic."""
    tables = {
        threads: grids(results.table("scaling", of, threads)) for threads, of in CLOCKS.items()
    }
    tables = {threads: table for threads, table in tables.items() if table}
    if not tables:
        return None
    figure, panels = _panels(len(tables), len(AXES))
    for row, (threads, table) in zip(panels, tables.items(), strict=True):
        for panel, axis in zip(row, AXES, strict=True):
            _growth_lines(panel, table.get(axis, {}))
            panel.set_title(TITLES[threads])
            panel.set_xlabel(AXES[axis])
            panel.set_ylabel("seconds")
    return figure


def _growth_lines(panel: Any, points: Mapping[str, Mapping[int, float]]) -> None:
    for system, of_system in points.items():
        numbers = sorted(of_system)
        steepness = slope(of_system)
        label = system if steepness is None else f"{system}: slope {steepness:.2f}"
        panel.plot(
            numbers, [of_system[n] for n in numbers], "o-", color=COLOURS[system], label=label
        )
    _make_logarithmic(panel)
    if points:
        panel.legend(fontsize="small")


def _make_logarithmic(panel: Any) -> None:
    panel.set_xscale("log")
    panel.set_yscale("log")
    _label_plainly(panel.xaxis)
    _label_plainly(panel.yaxis)


def _label_plainly(axis: Any) -> None:
    """Label a logarithmic axis 1, 2, 5, 10, ... rather than by powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator  # noqa: PLC0415

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
    axis.set_minor_locator(NullLocator())


def _legend_below(figure: Any, panel: Any) -> None:
    lines, labels = panel.get_legend_handles_labels()
    figure.legend(lines, labels, loc="outside lower center", ncols=5, fontsize="small")


def _panels(n_rows: int, n_columns: int, *, sharey: bool = False) -> tuple[Any, Any]:
    try:
        from matplotlib.figure import Figure  # noqa: PLC0415
    except ImportError as error:
        raise ImportError('figures need matplotlib: pip install "abcgbm[bench]"') from error
    figure = Figure(figsize=(5.0 * n_columns, 3.6 * n_rows), layout="constrained")
    return figure, figure.subplots(n_rows, n_columns, squeeze=False, sharey=sharey)
