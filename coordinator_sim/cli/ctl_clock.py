"""`ctl clock`: the clock of groups of a running `serve`."""

import threading
from typing import Annotated, Final

import typer

from coordinator_sim.cli.command_line import CommandLine
from coordinator_sim.cli.ctl_calls import Json, call, show, table
from coordinator_sim.cli.ending import EXIT_INTERRUPTED, EXIT_PROBLEMS_FOUND
from coordinator_sim.errors import ConfigError

clock_app = CommandLine(help="The clock of groups.")

_LOOK_S: Final = 0.25
"""How often an advance is asked how far it is, for the bar on a terminal."""


@clock_app.command("show")
def clock_show(context: typer.Context) -> None:
    """Show both clocks, what is parked, and the next deadlines but those of expiry sweeps."""
    found = call(context, "GET", "/v1/clock")
    parked, deadlines = found.pop("parked"), found.pop("deadlines")
    _show(found)
    typer.echo("")
    table(parked, ("group_id", "member_id", "api", "waits_for", "remaining_ms"))
    typer.echo("")
    of_groups = [each for each in deadlines if each["kind"] != "expiry"]
    table(of_groups, ("in_ms", "kind", "group_id", "member_id", "broker_id"))


@clock_app.command("set")
def clock_set(
    context: typer.Context,
    clock: Annotated[list[str], typer.Argument(help="wall, scaled F, virtual or virtual auto.")],
) -> None:
    """Go on with another clock."""
    _show(call(context, "PUT", "/v1/clock", {"clock": " ".join(clock)}))


@clock_app.command("advance")
def clock_advance(
    context: typer.Context,
    ms: Annotated[
        int | None,
        typer.Argument(help="How far, ten years at most; by default to the next deadline.", min=0),
    ] = None,
) -> None:
    """Move a virtual clock on, and print what happened meanwhile; Ctrl-C calls it off."""
    _move(context, "/v1/clock/advance", {"ms": ms})


@clock_app.command("run-until")
def clock_run_until(
    context: typer.Context,
    group_ms: Annotated[
        int | None, typer.Argument(help="An instant, milliseconds since 1970.")
    ] = None,
    group: Annotated[str, typer.Option(help="Until this group is as wanted.")] = "",
    state: Annotated[str, typer.Option(help="Stable, Empty, PreparingRebalance, ...")] = "",
    members: Annotated[int | None, typer.Option(help="How many it has.")] = None,
    generation: Annotated[int | None, typer.Option(help="That it is in.")] = None,
    min_generation: Annotated[int | None, typer.Option(help="That it is in or past.")] = None,
    fault: Annotated[int | None, typer.Option(help="Until this fault rule acted.")] = None,
    hits: Annotated[int | None, typer.Option(help="How often it acted; 1 if not said.")] = None,
    within_ms: Annotated[
        int | None,
        typer.Option(help="Group time that a condition may take; 600000 if not said.", min=0),
    ] = None,
) -> None:
    """Move a virtual clock to an instant, or until a condition holds; prints as advance does.

    Exit code 1 if the condition does not hold within its bound.

    Example: coordinator-sim ctl clock run-until --group app --state Stable --members 2
    """
    of_group = {
        "state": state or None,
        "members": members,
        "generation": generation,
        "min_generation": min_generation,
    }
    body: dict[str, Json] = {"group_ms": group_ms, "within_ms": within_ms}
    if group:
        body["group"] = {"group_id": group, **of_group}
    elif any(each is not None for each in of_group.values()):
        raise ConfigError("which group? --state, --members and the generations belong to --group")
    if fault is not None:
        body["fault"] = {"fault_id": fault, "hits": 1 if hits is None else hits}
    elif hits is not None:
        raise ConfigError(f"which rule? --hits {hits} belongs to --fault")
    _move(context, "/v1/clock/run-until", body)


@clock_app.command("stop")
def clock_stop(context: typer.Context) -> None:
    """Call off the advance that is under way; the clock stays where it is then."""
    typer.echo(f"group time is {call(context, 'POST', '/v1/clock/stop')['group_ms']}")


def _show(clock: dict[str, Json]) -> None:
    show({name: value for name, value in clock.items() if name != "advance" or value is not None})


def _move(context: typer.Context, path: str, body: dict[str, Json]) -> None:
    moving = _Moving(context, path, body)
    try:
        moving.watch()
    except KeyboardInterrupt:
        moving.call_off()
    moved = moving.answer()
    rows = [
        {**each, "reason": each.get("details", {}).get("reason_text", "")}
        for each in moved["fired"]
    ]
    table(rows, ("seq", "group_ms", "event", "group_id", "generation", "member_id", "reason"))
    if not moved["is_whole"]:
        typer.echo(f"these are the newest {len(rows)}; what was before them is not kept", err=True)
    if not moved["is_there"]:
        typer.echo(f"called off at {moved['clock']['group_ms']}", err=True)
        raise typer.Exit(EXIT_INTERRUPTED)
    if moved["is_met"]:
        typer.echo(f"\n{moved['found']} at {moved['clock']['group_ms']}")
    elif moved["is_met"] is not None:
        bound = f"group time is at its bound, {moved['clock']['group_ms']}"
        typer.echo(f"error: {bound}, and {moved['found']}", err=True)
        raise typer.Exit(EXIT_PROBLEMS_FOUND)


class _Moving:
    """A call that moves the clock, on a thread of its own: meanwhile another call can end it."""

    def __init__(self, context: typer.Context, path: str, body: dict[str, Json]) -> None:
        self._context = context
        self._answer: Json = None
        self._error: BaseException | None = None
        # Not the thread's own end: a `join` that Ctrl-C interrupts takes a thread for ended.
        self._ended = threading.Event()
        threading.Thread(target=self._call, args=(path, body), daemon=True).start()

    def _call(self, path: str, body: dict[str, Json]) -> None:
        try:
            self._answer = call(self._context, "POST", path, body, limit_s=None)
        except BaseException as error:  # noqa: BLE001 - it is raised where the answer is read
            self._error = error
        finally:
            self._ended.set()

    def watch(self) -> None:
        """Wait for the answer; on a terminal a bar shows how far the clock is."""
        from coordinator_sim.cli.progress import PATIENCE_S, progress_bar

        self._ended.wait(PATIENCE_S)
        while (advance := self._advance()) is None:  # Not begun yet, or over.
            if self._ended.wait(_LOOK_S):
                return
        start_ms, total_ms = advance["from_ms"], advance["target_ms"] - advance["from_ms"]
        with progress_bar("moving the clock", total_ms, patience_s=0) as tell:
            while (advance := self._advance()) is not None:
                tell(advance["now_ms"] - start_ms)
                self._ended.wait(_LOOK_S)

    def _advance(self) -> Json:
        """What is under way; None when the call is answered."""
        if self._ended.is_set():
            return None
        return call(self._context, "GET", "/v1/clock")["advance"]

    def call_off(self) -> None:
        """End the move where it is."""
        if not self._ended.is_set():
            call(self._context, "POST", "/v1/clock/stop")

    def answer(self) -> Json:
        """What happened.

        Raises:
            Exception: what the call ended with.
        """
        self._ended.wait()
        if self._error is not None:
            raise self._error
        return self._answer
