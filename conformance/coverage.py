"""Behaviours named in a catalogue of requirements that the registry lacks.

A catalogue is YAML: a list of cases, or a mapping whose `cases` is one; a case has an `id`.
An id that is a letter and two digits before words, such as `A01-create`, is of Trogdor, and its
requirement is `TROGDOR-A01`. `deferred.toml` lists deferred behaviours with their reasons.
"""

import re
import tomllib
from collections.abc import Iterable, Mapping
from importlib.resources import files
from pathlib import Path
from typing import Final

from msgspec import Struct

from coordinator_sim.errors import ConfigError, needing
from coordinator_sim_conformance.requirements import TROGDOR

_OF_TROGDOR: Final = re.compile(r"([A-Z]\d\d)-[a-z].*")


class Coverage(Struct, frozen=True, kw_only=True):
    """Coverage of one catalogue; every tuple keeps the catalogue's order."""

    catalogue: str
    covered: tuple[str, ...]
    deferred: tuple[str, ...]
    missing: tuple[str, ...]


def read_deferred() -> dict[str, str]:
    """Return the deferred requirements with their reasons.

    Raises:
        ConfigError: an entry lacks its reason.
    """
    text = (
        files("coordinator_sim_conformance").joinpath("deferred.toml").read_text(encoding="utf-8")
    )
    found: dict[str, str] = {}
    for entry in tomllib.loads(text).get("deferred", ()):
        if not entry.get("id") or not entry.get("reason"):
            raise ConfigError(f"deferred.toml: {entry} wants an id and a reason")
        found[entry["id"]] = entry["reason"]
    return found


def read_catalogue(path: Path) -> list[str]:
    """Return the ids of a catalogue's requirements, in its order.

    Raises:
        OSError: the file cannot be read.
        ConfigError: the file is not YAML, or holds no cases with ids.
        MissingDependencyError: the `conformance` extra is not installed.
    """
    with needing("conformance", "a catalogue"):
        import yaml
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        reason = str(error).replace("\n", " ")
        raise ConfigError(f"{path}: not a YAML catalogue: {reason}") from None
    cases = data.get("cases") if isinstance(data, dict) else data
    if not isinstance(cases, list) or not cases:
        raise ConfigError(f"{path}: wants a list of cases, or a mapping with `cases`")
    ids = [case.get("id") if isinstance(case, dict) else None for case in cases]
    if not all(isinstance(each, str) for each in ids):
        raise ConfigError(f"{path}: case {ids.index(None) + 1} has no id")
    return [_OF_TROGDOR.sub(rf"{TROGDOR}-\1", str(each)) for each in ids]


def compare(
    catalogue: str, ids: Iterable[str], known: Iterable[str], deferred: Mapping[str, str]
) -> Coverage:
    """Classify each id of a catalogue: covered, deferred, or missing."""
    listed, requirements = list(ids), frozenset(known)
    return Coverage(
        catalogue=catalogue,
        covered=tuple(each for each in listed if each in requirements),
        deferred=tuple(each for each in listed if each in deferred and each not in requirements),
        missing=tuple(each for each in listed if each not in requirements and each not in deferred),
    )
