"""What is kept of mutants: why survivors may live, and the last run that was recorded."""

import tomllib
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from coordinator_sim import __version__
from coordinator_sim.errors import ConfigError, DataError
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


def read_record(path: Path) -> Record:
    """A run from a file that `write_record` wrote.

    Raises:
        DataError: the file cannot be read, or is no such run.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=Record)
    except (OSError, msgspec.MsgspecError) as problem:
        raise DataError(f"{path}: no run of `mutants --record`: {problem}") from problem


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


def drawn(
    mutants: Sequence[Mutant], sample: int | None, seed: int, first: Collection[str] = ()
) -> list[Mutant]:
    """Draw so many of the mutants; all of them for None or a larger number.

    Each mutant's lot comes from the seed and its own id, so that mutants which appear or go with
    an edit of the core leave the others drawn or not, as they were.

    Args:
        mutants: What to draw from.
        sample: How many, at least 0.
        seed: Of the lots.
        first: Ids that are taken before any other.
    """
    if sample is None or sample >= len(mutants):
        return list(mutants)

    def lot(mutant: Mutant) -> tuple[bool, bytes]:
        digest = sha256(f"{seed} {mutant.mutant_id}".encode()).digest()
        return mutant.mutant_id not in first, digest

    return sorted(mutants, key=lot)[:sample]


def played_again(
    mutants: Sequence[Mutant], record: Record, sample: int | None, seed: int
) -> list[Mutant]:
    """The mutants of a recorded run that there still are, filled up to so many by the seed."""
    kept = record.killers.keys() & {mutant.mutant_id for mutant in mutants}
    return drawn(mutants, len(kept) if sample is None else sample, seed, kept)


def named(mutants: Sequence[Mutant], mutant_ids: Sequence[str]) -> list[Mutant]:
    """The mutants with these ids, in the order of the ids.

    Raises:
        ConfigError: there is none of that id.
    """
    known = {mutant.mutant_id: mutant for mutant in mutants}
    for mutant_id in mutant_ids:
        if mutant_id not in known:
            raise ConfigError(
                f"--only {mutant_id!r}: no such mutant; give an id as `mutants` prints it, "
                "MODULE:FUNCTION:KIND:NUMBER"
            )
    return [known[mutant_id] for mutant_id in dict.fromkeys(mutant_ids)]


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
