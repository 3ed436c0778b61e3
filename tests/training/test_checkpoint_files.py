"""Checkpoint files: what is refused, when they are written, and failures to write."""

import gc
import io
import json
import shutil
import warnings
import weakref
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from abcgbm import (
    ABCBoostClassifier,
    AdaptiveBaseClass,
    Checkpoint,
    KeepOnInterrupt,
    ModelFileError,
)
from abcgbm.data.digest import digest_of
from abcgbm.model.file import ModelContents, load, save
from abcgbm.parameters.parameters import Parameters
from abcgbm.training.checkpoint import CheckpointWriter, FitState
from abcgbm.training.fingerprint import _AS_GIVEN, NOT_IN_FINGERPRINT
from model_files import members_of, with_valid_digests
from models import noisy_data, parameter, small, with_fields

ROWS, LABELS = noisy_data(n_rows=400, n_classes=4)
X, Y = ROWS[:250], LABELS[:250]
VALIDATION = {"X_val": ROWS[250:], "y_val": LABELS[250:]}
EAGER = {"learning_rate": 0.25, "max_iter": 60, "n_iter_no_change": 4}


def stopped_after(n_iter: int, path: Path, *, data=(X, Y), rows=None, **parameters) -> None:
    """Write the checkpoint of an interrupted fit."""

    def stop(report):
        return report.iteration == n_iter

    small(callbacks=[stop, Checkpoint(path)], **parameters).fit(*data, **rows or {})


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "run.abcgbm"


# ------------------------------------------------------------------------------ another training

OTHER_PARAMETERS = {
    "learning_rate": 0.2,
    "max_leaf_nodes": 5,
    "max_depth": 3,
    "min_samples_leaf": 11,
    "l2_regularization": 1.0,
    "max_bins": 60,
    "subsample": 0.5,
    "max_features": 2,
    "interaction_cst": "pairwise",
    "class_weight": {0: 2.0},
    "classes": [0, 1, 2, 3, 4],
    "early_stopping": True,
    "scoring": "error",
    "validation_fraction": 0.2,
    "n_iter_no_change": 9,
    "tol": 0.0,
    "random_state": 1,
    "min_gain": 0.5,
    "baseline": "prior",
    "line_search": True,
    "smoothing": 5.0,
    "penalty": 2.0,
    "handle_unknown": "error",
}


@pytest.mark.parametrize(("name", "value"), OTHER_PARAMETERS.items(), ids=OTHER_PARAMETERS)
def test_parameter_that_would_change_the_model_is_named(name, value, path):
    stopped_after(3, path)
    given = {"algorithm": AdaptiveBaseClass(line_search=False)}
    if name in ("min_gain", "baseline", "line_search"):
        given = with_fields(given, **{name: value})
    else:
        given |= parameter(name, value)
    with pytest.raises(ValueError, match=f"is of another training: .*{name} (was .*, is|differs)"):
        small(**given).fit(X, Y, resume_from=path)


def test_every_parameter_is_compared_or_may_change():
    """Parameters absent here belong to other algorithms or exclude others."""
    elsewhere = {"refit", "algorithm", "base_class", "n_projections", "min_hessian_leaf"}
    elsewhere |= {"sequential_residuals", "recenter"}
    categorical = {"smoothing": "categorical_smoothing", "penalty": "categorical_penalty"}
    tried = {categorical.get(name, name) for name in OTHER_PARAMETERS}
    known = {*tried, *NOT_IN_FINGERPRINT, *elsewhere, "categorical_features"}
    assert known == set(Parameters.__annotations__)
    assert set(_AS_GIVEN) <= {*tried, *elsewhere}


NAMED = pd.DataFrame(X, columns=["a", "b", "c", "d"])
OTHER_DATA = {
    "rows": ((X[:240], Y[:240]), {}, "shape of X was 250 rows, 4 features, is 240 rows"),
    "features": ((X[:, :3], Y), {}, "shape of X was 250 rows, 4 features, is 250 rows, 3"),
    "values": ((np.where(np.arange(4) == 1, X[:, :1], X), Y), {}, "X differs"),
    "order": ((X[::-1], Y[::-1]), {}, "X differs; y differs"),
    "labels": ((X, np.roll(Y, 1)), {}, "y differs"),
    "classes": ((X, Y + 1), {}, r"classes was \[0, 1, 2, 3\], is \[1, 2, 3, 4\]"),
    "weights": ((X, Y, np.arange(1, 251)), {}, "sample_weight differs"),
    "names": ((NAMED, Y), {}, r"names of X was None, is \['a', 'b', 'c', 'd'\]"),
    "categories": ((NAMED.round().astype("category"), Y), {}, r"categorical_features was \[\], is"),
    "validation": ((X, Y), VALIDATION, "training: the shape of X_val was not given$"),
}


@pytest.mark.parametrize(("data", "rows", "message"), OTHER_DATA.values(), ids=OTHER_DATA)
def test_different_data_are_an_error_that_names_the_difference(data, rows, message, path):
    stopped_after(3, path, early_stopping=False)
    with pytest.raises(ValueError, match=message):
        small(early_stopping=False).fit(*data, **rows, resume_from=path)


def test_all_differences_are_named_at_once(path):
    stopped_after(3, path)
    with pytest.raises(ValueError, match=r"max_bins was 255, is 60; .*; X differs; y differs"):
        small(max_bins=60, subsample=0.5).fit(X[::-1], Y[::-1], resume_from=path)


def test_resolved_value_may_replace_auto(path):
    settings = {"max_iter": 80, "random_state": 3}
    whole = ABCBoostClassifier(**settings).fit(X, Y)
    stop = {"callbacks": [lambda r: r.iteration == 3, Checkpoint(path)]}
    ABCBoostClassifier(**settings, **stop).fit(X, Y)
    names = ("algorithm", "learning_rate", "max_leaf_nodes")
    given = {name: whole.resolved_params_[name] for name in names}
    resumed = ABCBoostClassifier(**settings, **given).fit(X, Y, resume_from=path)
    assert (resumed.model_, resumed.history_) == (whole.model_, whole.history_)


def test_different_default_learning_rate_is_refused_with_a_remedy(path):
    given = {"learning_rate": 0.12, "callbacks": [lambda r: r.iteration == 3, Checkpoint(path)]}
    ABCBoostClassifier(max_iter=100, **given).fit(X, Y)
    cure = r"learning_rate was 0.12, is 0.04 \(.*: learning_rate=0.12 continues as before"
    with pytest.raises(ValueError, match=cure):
        ABCBoostClassifier(max_iter=200).fit(X, Y, resume_from=path)
    resumed = ABCBoostClassifier(max_iter=8, learning_rate=0.12).fit(X, Y, resume_from=path)
    assert resumed.model_ == ABCBoostClassifier(max_iter=8, learning_rate=0.12).fit(X, Y).model_


def test_default_learning_rate_allows_more_iterations(path):
    ABCBoostClassifier(max_iter=80, callbacks=[lambda r: r.iteration == 3, Checkpoint(path)]).fit(
        X, Y
    )
    resumed = ABCBoostClassifier(max_iter=90).fit(X, Y, resume_from=path)
    assert resumed.model_ == ABCBoostClassifier(max_iter=90).fit(X, Y).model_


def test_fewer_iterations_than_in_the_checkpoint_are_refused(path):
    stopped_after(5, path)
    with pytest.raises(ValueError, match="max_iter=4 with resume_from; expected at least the 5 it"):
        small(max_iter=4).fit(X, Y, resume_from=path)


def test_max_iter_is_fixed_after_validation(path):
    phases = []

    def stop(report):
        phases.append(report.phase)
        return report.phase == "refit"

    held_out = EAGER | {"early_stopping": True, "refit": True}
    small(callbacks=[stop, Checkpoint(path)], **held_out).fit(X, Y)
    assert phases[-1] == "refit"
    with pytest.raises(ValueError, match="max_iter=70 with resume_from; expected 60 as before"):
        small(**held_out | {"max_iter": 70}).fit(X, Y, resume_from=path)


def test_failed_resume_keeps_the_model_of_a_warm_start(path):
    stopped_after(3, path)
    model = small(warm_start=True).fit(X, Y)
    before = model.model_
    with pytest.raises(ValueError, match="another training"):
        model.fit(X[:240], Y[:240], resume_from=path)
    assert model.model_ is before


# ------------------------------------------------------------------------------------------- files


def test_model_without_training_state_is_refused(path):
    small().fit(X, Y).save_model(path)
    with pytest.raises(
        ValueError, match=r"a model file, not a checkpoint; expected a file .* warm_start"
    ):
        small().fit(X, Y, resume_from=path)


def test_missing_or_foreign_file_is_an_error(path):
    with pytest.raises(FileNotFoundError):
        small().fit(X, Y, resume_from=path)
    path.write_bytes(b"not a model")
    with pytest.raises(ModelFileError):
        small().fit(X, Y, resume_from=path)


def test_fit_resumes_from_an_open_file(path):
    stopped_after(3, path)
    with path.open("rb") as file:
        resumed = small().fit(X, Y, resume_from=file)
    assert resumed.model_ == small().fit(X, Y).model_


def test_fit_may_write_to_the_checkpoint_it_resumes_from(path):
    stopped_after(3, path)
    small(callbacks=[Checkpoint(str(path), every=2)]).fit(X, Y, resume_from=str(path))
    assert load(path).model.n_iter == 8


def test_checkpoint_is_the_model_of_the_best_iteration_so_far(path):
    whole = small(**EAGER).fit(X, Y, **VALIDATION)
    assert whole.best_iteration_ + 2 < whole.n_iter_
    stopped_after(whole.n_iter_ - 1, path, rows=VALIDATION, **EAGER)
    loaded = ABCBoostClassifier.load_model(path)
    assert loaded.model_ == whole.model_
    assert (loaded.n_iter_, loaded.best_iteration_) == (whole.n_iter_ - 1, whole.best_iteration_)
    assert (loaded.stop_reason_, loaded.refit_history_) == ("checkpoint", None)
    assert loaded.get_params()["learning_rate"] == 0.25


def test_checkpoint_during_refit_is_the_validated_model(path):
    held_out = EAGER | {"early_stopping": True}
    small(callbacks=[lambda r: r.phase == "refit", Checkpoint(path)], **held_out, refit=True).fit(
        X, Y
    )
    loaded, validated = ABCBoostClassifier.load_model(path), small(**held_out).fit(X, Y)
    assert (loaded.model_, loaded.history_) == (validated.model_, validated.history_)
    assert loaded.refit_history_ is None


def test_saved_model_has_the_same_bytes_after_an_interruption(path):
    stopped_after(3, path, algorithm=AdaptiveBaseClass(n_candidates=2, gap=1))
    files = io.BytesIO(), io.BytesIO()
    parameters = {"algorithm": AdaptiveBaseClass(n_candidates=2, gap=1)}
    small(callbacks=[Checkpoint(path)], **parameters).fit(X, Y, resume_from=path).save_model(
        files[0]
    )
    small(**parameters, n_jobs=1).fit(X, Y).save_model(files[1])
    assert files[0].getvalue() == files[1].getvalue()


def test_checkpoint_of_an_iteration_is_reproducible(path, tmp_path):
    stopped_after(3, path)
    stopped_after(3, tmp_path / "again")
    assert path.read_bytes() == (tmp_path / "again").read_bytes()


def test_parameter_that_cannot_be_stored_does_not_warn_during_training(path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        stopped_after(3, path)


def invalid_states(state: dict) -> dict[str, dict]:
    facts = {name: value for name, value in state["facts"].items() if name != "y"}
    return {
        "phase": state | {"phase": "refit"},
        "unknown phase": state | {"phase": 7},
        "facts": state | {"facts": ["y"]},
        "fewer facts": state | {"facts": facts},
        "earlier": state | {"n_earlier": 4},
        "earlier text": state | {"n_earlier": "1"},
        "earlier float": state | {"n_earlier": 1.0},
        "facts of no text": state | {"facts": state["facts"] | {"y": [1]}},
        "validated": state | {"validated": {"remark": None, "phase": "train"}},
        "odd": state | {"validated": 3},
        "nothing": {},
        "no facts": state | {"facts": {}},
    }


@pytest.mark.parametrize("name", invalid_states({"facts": {}}))
def test_invalid_training_state_is_refused(name, path):
    stopped_after(3, path)
    saved = load(path)
    state = invalid_states(dict(saved.checkpoint))[name]
    save(ModelContents(saved.model, saved.history, None, saved.parameters, state), path)
    with pytest.raises(
        ValueError, match=r"state of the checkpoint|no trees|y was not given|shape of X was not"
    ):
        small().fit(X, Y, resume_from=path)


@pytest.fixture(scope="module")
def of_refit(tmp_path_factory) -> bytes:
    """Return the checkpoint of a refit, which has every kind of state."""
    path = tmp_path_factory.mktemp("refit") / "file"
    frame = NAMED.assign(level=np.array(["p", "q", "r"])[(Y + (X[:, 0] > 0)) % 3])
    held_out = {"early_stopping": True, "refit": True, "max_iter": 2, "max_leaf_nodes": 4}
    callbacks = [Checkpoint(path), lambda report: report.phase == "refit"]
    small(callbacks=callbacks, **held_out).fit(frame, Y)
    return path.read_bytes()


def test_flipped_bit_of_a_checkpoint_is_detected_or_harmless(of_refit):
    rng, original = np.random.default_rng(0), load(io.BytesIO(of_refit))
    for place in rng.integers(8 * len(of_refit), size=300):
        content = bytearray(of_refit)
        content[place // 8] ^= 1 << place % 8
        try:
            saved = load(io.BytesIO(content))
        except ModelFileError:
            continue
        assert digest_of(saved) == digest_of(original)


def test_damaged_checkpoint_with_valid_digests_is_refused_or_usable(of_refit):
    rng, members = np.random.default_rng(1), members_of(of_refit)
    names = sorted(members.keys() - {"model.json"})
    for _ in range(300):
        name = str(rng.choice(names))
        content = bytearray(members[name])
        content[rng.integers(len(content))] = rng.integers(256)
        file = with_valid_digests(members | {name: bytes(content)})
        with suppress(ModelFileError):
            FitState.load(io.BytesIO(file)).model.check()
            ABCBoostClassifier.load_model(io.BytesIO(file)).model_.check()


def test_checkpoint_without_its_best_iteration_is_refused(path):
    stopped_after(3, path)
    saved = load(path)
    with pytest.raises(ValueError, match="a checkpoint of 2 iterations; its best one is 3"):
        save(
            ModelContents(
                saved.model.first_iterations(2), saved.history, None, {}, saved.checkpoint
            ),
            path,
        )


def test_trees_inconsistent_with_the_recorded_losses_are_refused(path, tmp_path):
    stopped_after(3, path)
    stopped_after(3, tmp_path / "other", learning_rate=0.05)
    saved, other = load(path), load(tmp_path / "other")
    save(ModelContents(other.model, saved.history, None, {}, saved.checkpoint), path)
    with pytest.raises(ValueError, match="do not give the losses"):
        small().fit(X, Y, resume_from=path)


def test_checkpoint_of_another_version_is_refused(path):
    stopped_after(3, path)
    saved = load(path)
    facts = saved.checkpoint["facts"] | {"version of abcgbm": "0.0.1"}
    state = saved.checkpoint | {"facts": facts}
    save(ModelContents(saved.model, saved.history, None, {}, state), path)
    with pytest.raises(ValueError, match=r"version of abcgbm was 0.0.1, is "):
        small().fit(X, Y, resume_from=path)


def test_file_contains_no_paths_threads_or_rows(path):
    stopped_after(3, path, n_jobs=2)
    with zipfile.ZipFile(path) as archive:
        document = json.loads(archive.read("model.json"))
    assert not {"checkpoint", "checkpoint_every", "n_jobs"} & document["parameters"].keys()
    assert str(path.parent) not in json.dumps(document)


# ---------------------------------------------------------------------------- when they are written


class Written:
    """A stub of disk and clock that records what was written at which second."""

    def __init__(self, cost: float = 0.0) -> None:
        self.now, self.cost, self.seconds = 0.0, cost, []

    def save(self, _checkpoint, _path) -> None:
        self.seconds.append(self.now)
        self.now += self.cost

    def run(self, n_seconds: int, every: int | None = None) -> list[float]:
        """Run iterations of one second each."""
        writer = CheckpointWriter(Path("file"), every, self.save, lambda: self.now)
        with writer.attached(lambda: "state"):
            while self.now < n_seconds:
                self.now += 1
                writer.end_iteration()
        return self.seconds


def test_checkpoint_is_written_every_n_iterations_and_at_the_end():
    assert Written().run(10, every=4) == [4, 8, 10]
    assert Written().run(8, every=4) == [4, 8]
    assert Written().run(2, every=4) == [2]


def test_checkpoint_is_written_every_minute_by_default():
    assert Written().run(200) == [60, 120, 180, 200]


def test_writing_takes_at_most_a_twentieth_of_the_time():
    seconds = Written(cost=10.0).run(1000)
    assert np.diff(seconds[:-1]).min() >= 200


def test_nothing_is_written_without_an_iteration():
    written = Written()
    with CheckpointWriter(Path("file"), 1, written.save).attached(lambda: "state"):
        pass
    assert written.seconds == []


def test_error_in_a_callback_leaves_a_checkpoint_of_the_last_iteration(path):
    def fail(report):
        if report.iteration == 4:
            raise RuntimeError("stop here")

    with pytest.raises(RuntimeError, match="stop here"):
        small(callbacks=[fail, Checkpoint(path)]).fit(X, Y)
    assert load(path).model.n_iter == 4
    assert small().fit(X, Y, resume_from=path).model_ == small().fit(X, Y).model_


@pytest.mark.parametrize("keep", [[], [KeepOnInterrupt()]], ids=["raise", "keep"])
def test_ctrl_c_leaves_a_checkpoint_of_the_last_iteration(keep, path):
    def interrupt(report):
        if report.iteration == 4:
            raise KeyboardInterrupt

    model = small(callbacks=[interrupt, Checkpoint(path), *keep])
    if not keep:
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, Y)
    else:
        assert model.fit(X, Y).stop_reason_ == "interrupted"
    assert load(path).model.n_iter == 4
    assert small().fit(X, Y, resume_from=path).model_ == small().fit(X, Y).model_


def test_full_disk_warns_once_and_training_continues(path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("abcgbm.model.file.model_file.write_whole", full)
    with pytest.warns(UserWarning, match="could not be written: .*No space left") as caught:
        model = small(callbacks=[Checkpoint(path, every=1)]).fit(X, Y)
    assert len(caught) == 1
    assert str(path) in str(caught[0].message)
    assert model.model_ == small().fit(X, Y).model_


def test_checkpoint_is_written_again_once_it_can_be(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "file"

    def come_and_go(report):
        if report.iteration == 2:
            shutil.rmtree(folder)
        if report.iteration == 5:
            folder.mkdir()

    with pytest.warns(UserWarning, match="could not be written") as caught:
        small(callbacks=[come_and_go, Checkpoint(path, every=1)]).fit(X, Y)
    assert len(caught) == 1
    assert load(path).model.n_iter == 8


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (
            Checkpoint("no/such/folder/file"),
            ValueError,
            "no/such/folder' does not exist",
        ),
        (
            Checkpoint("."),
            ValueError,
            "Checkpoint: path='.' is a folder; expected a path",
        ),
        (
            Checkpoint(3),
            TypeError,
            "Checkpoint: path=3; expected a path in a folder",
        ),
        (Checkpoint("a", every=0), ValueError, "every=0; expected None or an integer"),
        (Checkpoint("a", every=1.5), TypeError, "every=1.5; expected None or an integer"),
    ],
)
def test_unwritable_path_is_an_error_before_training(given, error, message):
    def never(_):
        raise AssertionError("a step was made")

    with pytest.raises(error, match=message):
        small(callbacks=[never, given]).fit(X, Y)


def test_labels_that_cannot_be_stored_are_an_error_before_training(path):
    labels = np.array([pd.Timestamp("2020-01-01"), pd.Timestamp("2021-01-01")], dtype=object)
    with pytest.raises(TypeError, match=r"y has labels such as Timestamp.*held by a model file"):
        small(callbacks=[Checkpoint(path)]).fit(X, labels[Y % 2])
    assert not path.exists()


def test_failed_checkpoint_warns(path):
    def refuse(checkpoint, path):
        raise TypeError("not this one")

    writer = CheckpointWriter(path, 1, refuse)
    warned = pytest.warns(
        UserWarning, match="could not be written.*not this one.*will be attempted"
    )
    with warned, writer.attached(object):
        writer.end_iteration()


def test_writer_releases_finished_training(path):
    class State:
        def take(self):
            return None

    state = State()
    known = weakref.ref(state)
    writer = CheckpointWriter(None, None, save)
    with writer.attached(state.take):
        writer.end_iteration()
    del state
    gc.collect()
    assert known() is None


def test_checkpoint_path_survives_a_change_of_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "elsewhere").mkdir()

    def go(report):
        monkeypatch.chdir(tmp_path / "elsewhere")

    small(max_iter=3, callbacks=[go, Checkpoint("run.abcgbm", every=1)]).fit(X, Y)
    assert (tmp_path / "run.abcgbm").exists()
    assert not (tmp_path / "elsewhere" / "run.abcgbm").exists()
