"""The files of `requirements`: what `./dev`, `.ci` and the image install, each with its hashes."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
FILES = ROOT / "requirements"
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
BASE = PROJECT["project"]["dependencies"]
EXTRAS = PROJECT["project"]["optional-dependencies"]
GROUPS = {
    name: [each for each in listed if isinstance(each, str)]
    for name, listed in PROJECT["dependency-groups"].items()
}
WANTED = {
    "build": GROUPS["build"],
    "dev": [
        *BASE,
        *(each for name, listed in EXTRAS.items() if name != "jvm" for each in listed),
        *GROUPS["build"],
        *GROUPS["dev"],
    ],
    "go": GROUPS["go"],
    "image": [*BASE, *EXTRAS["serve"]],
    "jvm": [*EXTRAS["jvm"], *GROUPS["jvm"]],
}
"""What each file has to have; `./dev lock` writes them."""
PINNED = re.compile(
    r"^([\w.-]+)==(\S+)(?: ;[^\\\n]*)? \\\n((?:    --hash=sha256:\w{64}(?: \\)?\n)+)", re.MULTILINE
)


def pinned(name: str) -> dict[str, list[str]]:
    """The versions of each package of a file, by its canonical name."""
    found: dict[str, list[str]] = {}
    for package, version, _ in PINNED.findall((FILES / f"{name}.txt").read_text("utf-8")):
        found.setdefault(canonicalize_name(package), []).append(version)
    return found


@pytest.mark.parametrize("name", WANTED)
def test_lock_has_what_the_project_declares(name: str) -> None:
    """Every requirement is there, and each of its versions is one that pyproject.toml allows."""
    versions = pinned(name)
    for each in map(Requirement, WANTED[name]):
        locked = versions.get(canonicalize_name(each.name), [])
        assert locked, f"{name}.txt lacks {each}: ./dev lock"
        assert all(each.specifier.contains(one) for one in locked), f"{each}: {locked}"


@pytest.mark.parametrize("name", WANTED)
def test_lock_holds_packages_with_hashes_and_nothing_else(name: str) -> None:
    """No index, no address, and nothing that pip would take unchecked."""
    text = (FILES / f"{name}.txt").read_text(encoding="utf-8")
    assert PINNED.sub("", text) == ""


def test_every_lock_is_one_of_these() -> None:
    """A new file is checked too."""
    assert {path.stem for path in FILES.iterdir()} == set(WANTED)


def test_image_has_the_versions_that_the_tests_run_with() -> None:
    """What is tested is what is in the image."""
    tested = pinned("dev")
    assert {name: tested[name] for name in pinned("image")} == pinned("image")


@pytest.mark.parametrize("name", ["dev", "Dockerfile", "noxfile.py"])
def test_locked_files_are_installed_with_their_hashes(name: str) -> None:
    """Whatever installs packages for the project itself has pip check them."""
    lines = (ROOT / name).read_text(encoding="utf-8").splitlines()
    using = [line for line in lines if re.search(r"requirements/\w+\.txt", line)]
    checked = [line for line in using if "--require-hashes" in line]
    assert checked
    assert [line for line in using if "install" in line and line not in checked] == []
