"""Opens the target of a name."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Final

from coordinator_sim import __version__
from coordinator_sim.errors import ConfigError
from coordinator_sim_conformance.differ.building import built
from coordinator_sim_conformance.differ.references import REFERENCES, reference_named
from coordinator_sim_conformance.differ.sides import LinesProcess
from coordinator_sim_conformance.targets.lines import LinesTarget
from coordinator_sim_conformance.targets.served import ServedTarget
from coordinator_sim_conformance.targets.simulator import SimulatorTarget
from coordinator_sim_conformance.targets.target import Target

SIMULATOR: Final = "simulator"
SERVE: Final = "serve"
_ORACLE: Final = "oracle:"


@contextmanager
def opened(name: str, say: Callable[[str], None]) -> Iterator[tuple[Target, str | None]]:
    """Open a target by its name, with its only profile if it has just one; closed at the end.

    Args:
        name: `simulator`, `serve` (our server, over TCP), or `oracle:` and the name of a reference.
        say: Called before long steps.

    Raises:
        ConfigError: the target is unknown.
        MissingDependencyError: the target needs Java or Maven, and they are not installed.
        DataError: the build of the target failed.
    """
    if name == SIMULATOR:
        yield SimulatorTarget(), None
        return
    if name == SERVE:
        with closing(ServedTarget()) as served:
            yield served, None
        return
    if not name.startswith(_ORACLE):
        known = ", ".join([SIMULATOR, SERVE, *(_ORACLE + each for each in REFERENCES)])
        raise ConfigError(f"unknown target {name!r}: use one of {known}")
    reference = reference_named(name.removeprefix(_ORACLE))
    command, folder = built(reference, say)
    with LinesProcess(command, folder) as process:
        target = LinesTarget(
            name,
            process,
            profile=reference.profile,
            producer_generation=reference.producer_generation,
        )
        yield target, reference.profile


def version_of(name: str) -> str:
    """Return the version of the target of a name that `opened` takes."""
    if name.startswith(_ORACLE):
        return reference_named(name.removeprefix(_ORACLE)).kafka_version
    return __version__
