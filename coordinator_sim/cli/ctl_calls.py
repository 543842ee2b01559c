"""The HTTP client of `ctl`: calls a control surface and prints its responses."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import msgspec
import typer

from coordinator_sim.cli.ending import EXIT_MISUSE, EXIT_PROBLEMS_FOUND
from coordinator_sim.errors import UNREADABLE_JSON, ConfigError, needing
from coordinator_sim.listening import bearer

if TYPE_CHECKING:
    import httpx

URL_VARIABLE: Final = "COORDINATOR_SIM_CONTROL"
_WAITED: Final = 408
_LIMIT_S: Final = 620.0
"""The server itself ends a wait before."""

Json = Any
"""Any JSON value."""


class Place(msgspec.Struct, frozen=True):
    """Which server is meant."""

    url: str = ""
    token: str = ""


class _Where(msgspec.Struct, frozen=True):
    control: str | None


def _client(context: typer.Context, limit_s: float | None = _LIMIT_S) -> "httpx.Client":
    """Who calls the server that the command line names.

    Args:
        context: Has the server's place.
        limit_s: How long an answer may take; None for as long as it needs.

    Raises:
        ConfigError: it names none, or a token that HTTP cannot carry.
    """
    import httpx

    place: Place = context.obj
    if not place.url:
        raise ConfigError(f"which server? --url, --ready-file, or the variable {URL_VARIABLE}")
    return httpx.Client(
        base_url=place.url, headers=bearer(place.token), timeout=limit_s, trust_env=False
    )


@contextmanager
def reached(context: typer.Context, limit_s: float | None = _LIMIT_S) -> "Iterator[httpx.Client]":
    """A client for calls; where none is answered, the line says which server was meant.

    Raises:
        ConfigError: no server answers, or something else does.
        MissingDependencyError: httpx is not installed.
    """
    with needing("serve", "ctl"):
        import httpx
    try:
        with _client(context, limit_s) as caller:
            yield caller
    except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
        raise ConfigError(
            f"{context.obj.url} does not answer as the control surface of a serve: {error}"
        ) from None


def url_in(ready_file: Path) -> str:
    """The control surface that a ready file names.

    Raises:
        ConfigError: it is no ready file, or its server has no control surface.
        OSError: it cannot be read.
    """
    try:
        found = msgspec.json.decode(ready_file.read_bytes(), type=_Where)
    except UNREADABLE_JSON as error:
        raise ConfigError(
            f"{ready_file} is no file that serve --ready-file wrote: {error}"
        ) from None
    if found.control is None:
        raise ConfigError(
            f"the serve of {ready_file} has no control surface: start it without --no-control"
        )
    return found.control


def call(
    context: typer.Context,
    method: str,
    path: str,
    body: Json = None,
    *,
    query: dict[str, str] | None = None,
    limit_s: float | None = _LIMIT_S,
) -> Json:
    """The answer to a call, as long as it may take where `limit_s` is None.

    Leaves with the server's reason when that refuses.

    Raises:
        ConfigError: no server answers.
    """
    with reached(context, limit_s) as caller:
        answer = caller.request(method, path, json=body, params=query)
        if answer.is_error:
            fail(answer)
        return answer.json() if answer.content else None


def fail(answer: "httpx.Response") -> NoReturn:
    """Say why the server refused; 1 for what was waited for in vain, 2 for misuse."""
    try:
        text = answer.json()["error"]
    except (ValueError, KeyError):
        text = f"{answer.status_code} {answer.reason_phrase}"
    typer.echo(f"error: {text}", err=True)
    raise typer.Exit(EXIT_PROBLEMS_FOUND if answer.status_code == _WAITED else EXIT_MISUSE)


def quoted(name: str) -> str:
    """A name as part of a path."""
    from urllib.parse import quote

    return quote(name)


def show(found: dict[str, Json]) -> None:
    """Print one thing, a line a field."""
    for name, value in found.items():
        shown = compact(value) if isinstance(value, dict | list) else _text(value)
        typer.echo(f"{name:<18} {shown}")


def table(rows: list[dict[str, Json]], names: tuple[str, ...]) -> None:
    """Print many things, a line each, with these of their fields."""
    cells = [[_text(row.get(name)) for name in names] for row in rows]
    widths = [
        max(len(name), *(len(row[place]) for row in cells), 0) if cells else len(name)
        for place, name in enumerate(names)
    ]
    for row in (list(names), *cells):
        line = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        typer.echo(line.rstrip())


def compact(value: Json) -> str:
    """JSON on one line."""
    return msgspec.json.encode(value).decode()


def _text(value: Json) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
