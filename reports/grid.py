"""Grid files: what a sweep runs, as TOML.

`docs/guides/own-topology.md` describes the file.
"""

import tomllib
from collections.abc import Callable, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from coordinator_sim.assignors.foreign.contract import AssignorKind, OwnAssignor
from coordinator_sim.assignors.registry import register_own
from coordinator_sim.errors import ConfigError
from coordinator_sim.sim.scenario import Scenario, load_scenario
from coordinator_sim.sim.scenario.variety import Variety, check_variety
from coordinator_sim_reports.hadoop_files import is_uri
from coordinator_sim_reports.trials import MEMBERSHIPS, Asked

MAX_RUNS: Final = 1_000_000
_ONE_SEED: Final = 3
_Value = str | int | bool


class AssignorEntry(Struct, frozen=True, forbid_unknown_fields=True, rename={"python": "from"}):
    """Where an own assignor is: a function of a file or module, a command line, or a Java class."""

    python: str = ""
    process: str = ""
    java: str = ""


class GridFile(Struct, frozen=True, forbid_unknown_fields=True):
    """The content of a grid file.

    Args:
        scenarios: Names of the catalogue, or scenario files, relative to the grid's folder.
        assignors: Assignors to compare; empty takes those of every sweep.
        memberships: Kinds of membership to compare.
        seeds: Number of worlds, or the seeds themselves.
        processing_times: Typical processing times in milliseconds, to compare instead.
        variety: Distributions, for scenarios without their own.
        settings: Kafka's names with a value, or a list of values to compare.
        assignor: Own assignors by name.
    """

    scenarios: tuple[str, ...]
    assignors: tuple[str, ...] = ()
    memberships: tuple[str, ...] = MEMBERSHIPS
    seeds: int | tuple[int, ...] = _ONE_SEED
    processing_times: tuple[int, ...] = ()
    variety: Variety = Variety()
    settings: dict[str, _Value | list[_Value]] = {}
    assignor: dict[str, AssignorEntry] = {}


def read_grid(path: Path) -> Asked:
    """Read a grid file, and make its own assignors known.

    Raises:
        ConfigError: the file is no grid, or names what there is not.
        ScenarioError: a scenario is unknown or impossible.
        OSError: a file cannot be read.
    """
    try:
        grid = msgspec.convert(tomllib.loads(path.read_text("utf-8")), GridFile)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise ConfigError(f"{path}: {error}") from error
    own = tuple(_own(path, name, entry) for name, entry in grid.assignor.items())
    for each in own:
        register_own(each)
    check_memberships(f"{path}: memberships", grid.memberships)
    check_variety(grid.variety)
    seeds = tuple(range(grid.seeds)) if isinstance(grid.seeds, int) else grid.seeds
    names, written = own_scenarios(grid.scenarios, partial(_file_of, path))
    values = [value if isinstance(value, list) else [value] for value in grid.settings.values()]
    combinations = 1
    for choices in values:
        combinations *= len(choices)
    if len(seeds) * combinations > MAX_RUNS:
        raise ConfigError(f"{path}: more than {MAX_RUNS:,} runs; compare fewer seeds or settings")
    return Asked(
        names=names,
        seeds=seeds,
        variety=grid.variety,
        processing_times=grid.processing_times,
        written=written,
        assignors=grid.assignors,
        memberships=grid.memberships,
        settings=tuple(
            dict(zip(grid.settings, map(_text, chosen), strict=True)) for chosen in product(*values)
        ),
        own=own,
    )


def check_memberships(where: str, memberships: Sequence[str]) -> None:
    """Refuse kinds of membership that there are not.

    Args:
        where: What names them.
        memberships: The kinds.

    Raises:
        ConfigError: one is unknown.
    """
    for membership in memberships:
        if membership not in MEMBERSHIPS:
            known = ", ".join(MEMBERSHIPS)
            raise ConfigError(f"{where}: {membership!r}: must be one of {known}")


def own_scenarios(
    named: Sequence[str], path_of: Callable[[str], Path]
) -> tuple[tuple[str, ...], dict[str, Scenario]]:
    """Return the names of scenarios, and those that are in files among them by name.

    Args:
        named: Names of the catalogue, and paths that end in `.json`, as `path_of` takes them.
        path_of: Gives the path of a named file.

    Raises:
        ConfigError: two files hold scenarios of one name.
        ScenarioError: a file holds no scenario.
        OSError: a file cannot be read.
    """
    names: list[str] = []
    written: dict[str, Scenario] = {}
    for each in named:
        if not each.endswith(".json"):
            names.append(each)
            continue
        scenario = load_scenario(path_of(each))
        if scenario.name in written:
            raise ConfigError(
                f"{each}: scenario {scenario.name!r} is in another file too: rename one in its file"
            )
        written[scenario.name] = scenario
        names.append(scenario.name)
    return tuple(names), written


def _file_of(path: Path, named: str) -> Path:
    """Return the path of a file that a grid names, from the grid's folder on."""
    if is_uri(named) or (is_uri(str(path)) and Path(named).is_absolute()):
        raise ConfigError(
            f"{path}: {named}: a grid names files by paths from its own folder on: copy it there"
        )
    return path.parent / named


def _own(path: Path, name: str, entry: AssignorEntry) -> OwnAssignor:
    kinds: tuple[AssignorKind, ...] = ("python", "process", "java")
    said = [(kind, target) for kind in kinds if (target := getattr(entry, kind))]
    if len(said) != 1:
        raise ConfigError(
            f"{path}: assignor.{name}: wants `from`, `process` or `java`, one of them"
        )
    ((kind, target),) = said
    if is_uri(str(path)):
        raise ConfigError(
            f"{path}: assignor.{name}: own assignors are run on this machine: copy the grid here"
        )
    return OwnAssignor(name=name, kind=kind, target=target, folder=str(path.parent.absolute()))


def _text(value: _Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
