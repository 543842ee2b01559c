"""The option `--bug` of `serve` and `run`: a historical bug in the process, put in by `entry`."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

if TYPE_CHECKING:
    from coordinator_sim_conformance.museum.bugs import Place
    from coordinator_sim_conformance.museum.exhibit import Exhibit

_LIST: Final = "list"
_PLACES: Final = {"serve": "SERVER", "run": "RUN"}


def place_of(command: str) -> "Place | None":
    """What the bugs of a command are put into; None for a command without the option."""
    name = _PLACES.get(command)
    if name is None:
        return None
    from coordinator_sim_conformance.museum.bugs import Place

    return Place[name]


def bugs_of_command(command: str, ids: Sequence[str]) -> "tuple[Exhibit, ...]":
    """The bugs that the command runs with.

    Raises:
        ConfigError: an id does not fit, or it was too late to put the bugs in.
    """
    place = place_of(command) if ids else None
    if place is None:
        return ()
    from coordinator_sim_conformance.museum.bugs import bugs_in_force

    return bugs_in_force(ids, place)


def _listing(command: str) -> Callable[[list[str] | None], list[str] | None]:
    """A callback that prints the ids and stops where `list` is asked for."""

    def _list(ids: list[str] | None) -> list[str] | None:
        place = place_of(command) if _LIST in (ids or ()) else None
        if place is not None:
            from coordinator_sim_conformance.museum.bugs import bugs_of

            typer.echo(", ".join(bugs_of(place)))
            raise typer.Exit
        return ids

    return _list


def _option(command: str) -> Any:  # noqa: ANN401 - typer's own type of an option is private
    return typer.Option(
        "--bug",
        metavar="ID",
        is_eager=True,
        callback=_listing(command),
        help="Run with a bug that Kafka had, such as KAFKA-12890; list: the ids. May be repeated.",
    )


ServeBugOption = Annotated[list[str] | None, _option("serve")]
RunBugOption = Annotated[list[str] | None, _option("run")]
