"""A run as a value and as a file of JSON, which `run` writes and `matrix` reads."""

import gzip
import shlex
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim.errors import UNREADABLE_JSON, DataError
from coordinator_sim_conformance.running import Ending, Verdict
from coordinator_sim_conformance.verdicts.standing import Standing, standing_of

SCHEMA_VERSION: Final = 1
"""Grows when a reader of older files would misread newer ones; new fields alone do not."""


class TargetFacts(Struct, frozen=True, kw_only=True):
    """What was judged.

    Args:
        name: Name in reports, such as `serve` or `kfake`.
        version: Its version; empty where it is not known.
        facts: Anything else worth knowing, by name.
    """

    name: str
    version: str = ""
    facts: dict[str, str] = {}


class RunResult(Struct, frozen=True, kw_only=True):
    """One run of the suite on one target.

    Args:
        target: What was judged.
        suite_version: Version of this suite.
        at: When the run began, UTC, as in `2026-11-23T11:30:00Z`.
        is_strict: Whether a break of a quirk of Kafka's counts as a failure.
        endings: How each case ended, in the order played.
        unlocks: Setting or right -> how many of the skipped cases it would unlock, most first.
        schema_version: Version of this form.
    """

    target: TargetFacts
    suite_version: str
    at: str
    endings: tuple[Ending, ...]
    is_strict: bool = False
    unlocks: dict[str, int] = {}
    schema_version: int = SCHEMA_VERSION

    @property
    def profiles(self) -> tuple[str, ...]:
        """Profiles that were played, in order; `clients` and `trogdor` among them."""
        return tuple(dict.fromkeys(ending.profile for ending in self.endings))

    def standing(self, ending: Ending) -> Standing:
        """Return what one of the endings counts as."""
        return standing_of(ending, is_strict=self.is_strict)

    def name_of(self, profile: str) -> str:
        """Return what the target was in the cases of a profile."""
        return f"{self.target.name} as {profile}"


def unlocks_of(endings: Iterable[Ending]) -> dict[str, int]:
    """Return how many skipped cases each setting or right would unlock, most first."""
    return dict(Counter(each.unlock for each in endings if each.unlock).most_common())


def unlock_lines(result: RunResult) -> Iterator[str]:
    """Yield how many skipped cases each setting or right would unlock, line by line."""
    if not result.unlocks:
        return
    skipped = sum(each.verdict is Verdict.SKIPPED for each in result.endings)
    yield f"{skipped} skipped; `conformance settings` prints what unlocks them:"
    for unlock, count in result.unlocks.items():
        yield f"  {count:>4}  {unlock}"
    others = skipped - sum(result.unlocks.values())
    if others:
        yield f"  {others:>4}  no setting, no right: the reason is in --result and --json"


def with_command(ending: Ending, options: Sequence[str], *, has_profile: bool) -> Ending:
    """Return the ending with the command that plays it alone.

    Args:
        ending: Ending of a case.
        options: Options of `conformance run` that name the target.
        has_profile: Whether the command has to name the profile.
    """
    profile = ("--profile", ending.profile) if has_profile else ()
    words = ("conformance", "run", *options, *profile, "--case", ending.case_id)
    return replace(ending, again=shlex.join(words))


def encoded(result: RunResult) -> bytes:
    """Return a result as JSON, indented, with a newline at the end."""
    return msgspec.json.format(msgspec.json.encode(result)) + b"\n"


def file_bytes(result: RunResult, path: Path) -> bytes:
    """Return a result as the bytes of a file, compressed where its name ends with `.gz`."""
    data = encoded(result)
    return gzip.compress(data, mtime=0) if path.suffix == ".gz" else data


def read_result(path: Path) -> RunResult:
    """Return the run that a result file holds, which gzip may have compressed.

    Raises:
        DataError: the file is no result, is of a later suite, or has a case twice.
    """
    data = path.read_bytes()
    if path.suffix == ".gz":
        try:
            data = gzip.decompress(data)
        except (OSError, EOFError, zlib.error) as error:
            raise DataError(f"{path}: {error}; wanted is what gzip made") from None
    try:
        version = msgspec.json.decode(data, type=_Versioned).schema_version
        if version > SCHEMA_VERSION:
            raise DataError(
                f"{path}: schema version {version}, and this suite reads up to {SCHEMA_VERSION}: "
                "install a newer one"
            )
        result = msgspec.json.decode(data, type=RunResult)
    except UNREADABLE_JSON as error:
        raise DataError(
            f"{path}: {error}; wanted is a file of `conformance run --result FILE`"
        ) from None
    counts = Counter((ending.case_id, ending.profile) for ending in result.endings)
    for (case_id, profile), count in counts.items():
        if count > 1:
            raise DataError(f"{path}: {case_id} as {profile} ends {count} times; keep one of them")
    return result


class _Versioned(Struct):
    """The field that any version of the form has."""

    schema_version: int
