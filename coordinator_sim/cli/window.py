"""The options for a part of a trace's time, `--since`, `--until`, `--last` and `--around`.

Instants without a zone are UTC, as commands print them. `ingest` keeps the options in the trace, in
the words that were typed: they apply to every command that is given none of its own.
"""

import inspect
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, time, timedelta, tzinfo
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer
from msgspec import Struct

from coordinator_sim.errors import ConfigError
from coordinator_sim.trace.window import ALWAYS, Window, clock

if TYPE_CHECKING:
    from coordinator_sim.trace.schema import RunManifest

_OPTIONS: Final = {
    "since": Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Show only what began at this time (UTC) or later: 2026-11-28T22:00, a date, a "
            "time of day as 22:00 (its last one), or a length back from the trace's end, as 12h.",
        ),
    ],
    "until": Annotated[
        str | None, typer.Option(metavar="TIME", help="Show only what began before this time.")
    ],
    "last": Annotated[
        str | None,
        typer.Option(
            metavar="LENGTH", help="Show only what began in the last 12h, 90m or 2d of the trace."
        ),
    ],
    "around": Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Show only what began within 30 minutes of this time; 03:12+-10m for ten.",
        ),
    ],
}
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DAY: Final = timedelta(days=1)
_US: Final = timedelta(microseconds=1)
_HALF_MS: Final = 1_800_000
_TIME_OF_DAY: Final = re.compile(r"\d{1,2}:\d\d.*")
_LENGTH: Final = re.compile(r"(\d+[a-z]+)+")
_WIDTH: Final = re.compile(r"(.*?)\s*(?:±|\+-|\+/-)\s*(.*)")


class WindowOptions(Struct, frozen=True):
    """What was typed for a window; None for an option that was not given."""

    since: str | None = None
    until: str | None = None
    last: str | None = None
    around: str | None = None

    @property
    def by_name(self) -> dict[str, str]:
        """The options that were given, by name."""
        names = self.__struct_fields__
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    @property
    def words(self) -> list[str]:
        """The options as they are typed again."""
        return [word for name, text in self.by_name.items() for word in (f"--{name}", text)]


ANY_TIME: Final = WindowOptions()
"""No option was given."""


def takes_window(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command these options; it gets them together, as `window_options`."""
    own = inspect.signature(command)

    @wraps(command)
    def with_window(**values: Any) -> None:  # noqa: ANN401 - whatever the command takes
        options = WindowOptions(**{name: values.pop(name) for name in _OPTIONS})
        check_options(options)
        command(**values, window_options=options)

    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        for name, annotation in _OPTIONS.items()
    ]
    others = [each for name, each in own.parameters.items() if name != "window_options"]
    with_window.__signature__ = own.replace(parameters=[*others, *options])  # type: ignore[attr-defined]
    with_window.__annotations__ = {**command.__annotations__, **_OPTIONS}
    return with_window


def stored_in(options: Mapping[str, str]) -> WindowOptions:
    """What `ingest` was given, by the options of the trace's manifest."""
    return WindowOptions(**{name: options.get(name) for name in WindowOptions.__struct_fields__})


def check_options(options: WindowOptions) -> None:
    """Refuse options that exclude each other.

    Raises:
        ConfigError: `--last` or `--around` is not alone.
    """
    names = list(options.by_name)
    for alone in ("last", "around"):
        others = [name for name in names if name != alone]
        if alone in names and others:
            raise ConfigError(f"--{others[0]} and --{alone} exclude each other: leave one out")


def window_in(info: "RunManifest", options: WindowOptions) -> Window:
    """The window that was asked for, or else the one that the trace keeps.

    Raises:
        ConfigError: A text cannot be read, two exclude each other, or the window is outside the
            trace.
    """
    zone: tzinfo = UTC
    if not options.by_name:
        options = stored_in(info.options)
        if not options.by_name:
            return ALWAYS
        zone = zone_named(info.options.get("tz", "UTC"))
    check_options(options)
    if info.first_ts_us is None or info.last_ts_us is None:
        raise ConfigError(f"{' '.join(options.words)}: the trace has no events to choose from")
    window = resolved(options, info.last_ts_us, zone)
    if window.until_us <= info.first_ts_us or window.from_us > info.last_ts_us:
        first, last = (clock(at_us // 1000) for at_us in (info.first_ts_us, info.last_ts_us))
        raise ConfigError(
            f"{' '.join(options.words)}: nothing lies there, the trace lasts from {first} to "
            f"{last} (UTC); choose a time between"
        )
    return window


def resolved(options: WindowOptions, end_us: int, zone: tzinfo = UTC) -> Window:
    """The window of a trace that ends at `end_us`; `zone` is that of instants without one.

    Raises:
        ConfigError: A text cannot be read, or the window ends before it begins.
    """
    from coordinator_sim.sim.scenario.lengths import parse_length

    end = _Origin("", end_us, zone)
    if options.last is not None:
        return _window(end_us - 1000 * parse_length("--last", options.last, low_ms=1), None)
    if options.around is not None:
        found = _WIDTH.fullmatch(options.around)
        text, width = (options.around, "") if found is None else (found[1], found[2])
        half_ms = parse_length("--around, after +-,", width, low_ms=1) if width else _HALF_MS
        # A time of day shortly after the end is meant, too, as far as the width reaches.
        at_us = _instant_us(text, end._replace(option="--around"), end_us + 1000 * half_ms)
        return _window(at_us - 1000 * half_ms, at_us + 1000 * half_ms)
    until_us = None
    if options.until is not None:
        until_us = _instant_us(options.until, end._replace(option="--until"))
    if options.since is None:
        return _window(None, until_us)
    # A time of day is the last one before the window ends: 22:00 is before 06:00 of the next day.
    before_us = end_us if until_us is None else until_us - 1
    from_us = _instant_us(options.since, _Origin("--since", end_us, zone), before_us)
    if until_us is not None and from_us >= until_us:
        raise ConfigError(
            f"--since {options.since} ({clock(from_us // 1000)}) must be before --until "
            f"{options.until} ({clock(until_us // 1000)})"
        )
    return _window(from_us, until_us)


class _Origin(NamedTuple):
    """Where an instant was typed, the end of the trace, and the zone of instants without one."""

    option: str
    end_us: int
    zone: tzinfo


def _instant_us(text: str, origin: _Origin, before_us: int | None = None) -> int:
    """The instant of a text; a time of day is the last one up to `before_us`, or the end."""
    from coordinator_sim.sim.scenario.lengths import parse_length

    if _LENGTH.fullmatch(text):
        return origin.end_us - 1000 * parse_length(origin.option, text)
    try:
        if _TIME_OF_DAY.fullmatch(text):
            limit = _EPOCH + (origin.end_us if before_us is None else before_us) * _US
            clock_time = time.fromisoformat(f"0{text}" if text[1] == ":" else text)
            zone = clock_time.tzinfo or origin.zone
            day = limit.astimezone(zone).date()
            at = datetime.combine(day, clock_time, zone)
            return _us(at if at <= limit else datetime.combine(day - _DAY, clock_time, zone))
        at = datetime.fromisoformat(text)
        return _us(at if at.tzinfo is not None else at.replace(tzinfo=origin.zone))
    except (ValueError, OverflowError) as error:
        raise ConfigError(
            f"{origin.option} {text!r}: wants an instant as 2026-11-28T22:00 or 2026-11-28, a time "
            "of day as 22:00, or a length back from the trace's end as 12h"
        ) from error


def _us(at: datetime) -> int:
    return (at - _EPOCH) // _US


def _window(from_us: int | None, until_us: int | None) -> Window:
    """A window with ends at whole milliseconds, so that instants in either unit agree."""
    return Window(
        ALWAYS.from_us if from_us is None else max(ALWAYS.from_us, from_us // 1000 * 1000),
        ALWAYS.until_us if until_us is None else min(ALWAYS.until_us, -(-until_us // 1000) * 1000),
    )


def window_line(info: "RunManifest", window: Window) -> str:
    """Which part of the trace is shown, in one line."""
    ends = (info.first_ts_us or 0, info.last_ts_us or 0)
    first, last = (clock(window.nearest_us(at_us) // 1000) for at_us in ends)
    return f"Shown is what began from {first} to {last}."


def echo_window(info: "RunManifest", window: Window) -> None:
    """Print which part of the trace is shown; nothing for the whole."""
    if window != ALWAYS:
        typer.echo(window_line(info, window) + "\n")


def as_document(window: Window) -> dict[str, Any]:
    """The window as a part of a JSON object; empty for the whole trace."""
    import msgspec

    return {} if window == ALWAYS else {"window": msgspec.to_builtins(window)}


def zone_named(name: str) -> tzinfo:
    """The time zone of an IANA name.

    Raises:
        ConfigError: No such zone is known here.
    """
    from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ConfigError(
            f"--tz {name!r}: no such time zone; use an IANA name such as UTC or America/New_York"
        ) from error
