"""Release metadata: version, compiled dependencies, and permissions of the workflows."""

import importlib.metadata
import json
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
VERSION = PROJECT["project"]["version"]
COMPILED_IN = {"nanobind": "BSD-3-Clause", "robin-map": "MIT"}


def installed(ending: str) -> str:
    """Return the text of a file among the package's metadata."""
    files = importlib.metadata.files("abcgbm") or []
    (path,) = (file for file in files if file.as_posix().endswith(ending))
    return Path(path.locate()).read_text("utf-8")


# ------------------------------------------------------------------------------------------- version


def test_citation_has_the_version():
    text = (ROOT / "CITATION.cff").read_text()
    assert re.findall(r"^version: (.+)$", text, re.MULTILINE) == [VERSION]


def test_changelog_begins_with_what_is_unreleased_and_the_version():
    headings = re.findall(r"^## \[(.+?)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[:2] == ["Unreleased", VERSION]


def test_citation_and_changelog_have_one_date():
    (released,) = re.findall(
        r"^date-released: (\S+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE
    )
    assert f"## [{VERSION}] - {released}\n" in (ROOT / "CHANGELOG.md").read_text()


# ---------------------------------------------------------------------------- compiled dependencies


def test_bill_of_materials_names_the_package_and_its_compiled_dependencies():
    bill = json.loads(installed(".dist-info/sboms/abcgbm.cdx.json"))
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    package = bill["metadata"]["component"]
    assert (package["version"], package["purl"]) == (VERSION, f"pkg:pypi/abcgbm@{VERSION}")
    licences = {part["name"]: part["licenses"][0]["license"]["id"] for part in bill["components"]}
    assert licences == COMPILED_IN
    assert all(part["purl"].endswith(part["version"]) for part in bill["components"])


def test_references_of_the_bill_of_materials_resolve():
    bill = json.loads(installed(".dist-info/sboms/abcgbm.cdx.json"))
    parts = [bill["metadata"]["component"], *bill["components"]]
    references = {part["bom-ref"] for part in parts}
    assert len(references) == len(parts)
    named = {r for line in bill["dependencies"] for r in (line["ref"], *line["dependsOn"])}
    assert named == references


def test_nanobind_version_satisfies_the_build_requirement():
    bill = json.loads(installed(".dist-info/sboms/abcgbm.cdx.json"))
    (version,) = (part["version"] for part in bill["components"] if part["name"] == "nanobind")
    (required,) = (r for r in PROJECT["build-system"]["requires"] if r.startswith("nanobind"))
    requirement = pytest.importorskip("packaging.requirements").Requirement(required)
    assert requirement.specifier.contains(version)


@pytest.mark.parametrize("name", ["LICENSE", *(f"licenses/{part}.txt" for part in COMPILED_IN)])
def test_licence_is_shipped_unchanged(name):
    assert installed(f".dist-info/licenses/{name}") == (ROOT / name).read_text("utf-8")


def test_shipped_nanobind_licence_matches_nanobind():
    pytest.importorskip("nanobind", reason="it is there where the package is built")
    (path,) = (file for file in importlib.metadata.files("nanobind") if file.name == "LICENSE")
    kept = (ROOT / "licenses" / "nanobind.txt").read_text("utf-8")
    assert Path(path.locate()).read_text("utf-8") == kept


def test_licence_expression_covers_compiled_dependencies():
    named = {"Apache-2.0", *COMPILED_IN.values()}
    assert {*PROJECT["project"]["license"].split(" AND ")} == named


# ----------------------------------------------------------------------------------------- workflows

of_workflows = pytest.mark.skipif(not WORKFLOWS, reason="workflows are in the repository only")


@of_workflows
@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_every_action_is_pinned_to_a_commit_and_says_its_version(path):
    used = re.findall(r"uses: (.+)$", path.read_text(), re.MULTILINE)
    pinned = re.compile(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+|\./\.github/workflows/.+")
    assert used
    assert [use for use in used if not pinned.fullmatch(use)] == []


@of_workflows
def test_an_action_has_the_same_commit_everywhere():
    texts = "".join(path.read_text() for path in WORKFLOWS)
    found = set(re.findall(r"uses: ([\w/-]+)@(\w{40})", texts))
    assert len(found) == len({action for action, _ in found})


@of_workflows
@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflow_permissions_are_granted_per_job(path):
    assert "\npermissions: {}\n" in path.read_text()


@of_workflows
def test_only_one_job_may_publish():
    texts = {path.name: path.read_text() for path in WORKFLOWS}
    assert [name for name, text in texts.items() if "gh-action-pypi-publish" in text] == [
        "release.yml"
    ]
    assert texts["release.yml"].count("id-token: write") == 1
