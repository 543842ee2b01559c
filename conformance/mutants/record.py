"""What is kept of mutants: why survivors may live, and the last run that was recorded."""

import tomllib
from collections import Counter
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from random import Random
from typing import Final

import msgspec
from msgspec import Struct

from coordinator_sim import __version__
from coordinator_sim.errors import ConfigError
from coordinator_sim_conformance.mutants.generation import modules_of_core, mutants_of
from coordinator_sim_conformance.mutants.mutant import Fate, Mutant, Trial

_FOLDER: Final = files("coordinator_sim_conformance").joinpath("museum")
_REASONS: Final = "survivors.toml"
_RECORD: Final = "mutants.json"
_FIELDS: Final = frozenset({"id", "reason"})


class Record(Struct, frozen=True, kw_only=True):
    """One run over a sample.

    Args:
        version: Release that was broken.
        of: Number of mutants that there were.
        sample: Number that was drawn.
        seed: Seed of the drawing.
        killers: What noticed each mutant, by id; empty for a survivor.
    """

    version: str
    of: int
    sample: int
    seed: int
    killers: dict[str, str]

    @property
    def score(self) -> float:
        """The share of mutants that was noticed, 0 to 1."""
        killed = sum(1 for killer in self.killers.values() if killer)
        return killed / len(self.killers) if self.killers else 0.0


def reasons_of_survivors() -> dict[str, str]:
    """Why each explained survivor may live, by id.

    Raises:
        ConfigError: an entry of `survivors.toml` is not an id with a reason, or is there twice.
    """
    reasons: dict[str, str] = {}
    document = tomllib.loads(_FOLDER.joinpath(_REASONS).read_text(encoding="utf-8"))
    for entry in document.get("survivor", []):
        if entry.keys() != _FIELDS or not entry["reason"].strip() or entry["id"] in reasons:
            raise ConfigError(f"{_REASONS}: {entry} wants an id of its own and a reason")
        reasons[entry["id"]] = entry["reason"]
    return reasons


def recorded_run() -> Record:
    """The run that `docs/mutants.md` tells of."""
    return msgspec.json.decode(_FOLDER.joinpath(_RECORD).read_bytes(), type=Record)


def record_of(trials: Sequence[Trial], of: int, seed: int) -> Record:
    """A run as it is kept."""
    return Record(
        version=__version__,
        of=of,
        sample=len(trials),
        seed=seed,
        killers={trial.mutant.mutant_id: trial.killed_by for trial in trials},
    )


def write_record(record: Record, path: Path) -> None:
    """Write a run to a file, one mutant a line."""
    path.write_bytes(msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n")


def drawn(mutants: Sequence[Mutant], sample: int | None, seed: int) -> list[Mutant]:
    """So many of the mutants, drawn by the seed; all of them for None or a larger number."""
    if sample is None or sample >= len(mutants):
        return list(mutants)
    return Random(seed).sample(list(mutants), sample)  # noqa: S311 - draws mutants, guards nothing


def all_mutants(modules: Iterable[str] = ()) -> list[Mutant]:
    """Every mutant of these modules; of the whole core without any."""
    return [mutant for module in modules or modules_of_core() for mutant in mutants_of(module)]


def by_module(fates: Iterable[tuple[str, bool]]) -> dict[str, tuple[int, int]]:
    """Module -> how many of its mutants were killed, of how many.

    Args:
        fates: The id of a mutant, and whether it was killed.
    """
    killed: Counter[str] = Counter()
    tried: Counter[str] = Counter()
    for mutant_id, is_killed in fates:
        module = mutant_id.partition(":")[0]
        tried[module] += 1
        killed[module] += is_killed
    return {module: (killed[module], tried[module]) for module in sorted(tried)}


def fates_of(trials: Iterable[Trial]) -> list[tuple[str, bool]]:
    """The id of each mutant, and whether it was killed."""
    return [(trial.mutant.mutant_id, trial.fate is Fate.KILLED) for trial in trials]
