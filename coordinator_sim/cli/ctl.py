"""`ctl`: operates a running `serve` over its control surface.

`ctl clock`: the clock of groups of a running `serve`.

`ctl link`: the network between the clients and the brokers of a running `serve`.
"""

import threading
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
import typer

from coordinator_sim.cli.command_line import CommandLine
from coordinator_sim.cli.ctl_calls import (
    URL_VARIABLE,
    Json,
    Place,
    call,
    compact,
    fail,
    quoted,
    reached,
    show,
    table,
    url_in,
)
from coordinator_sim.cli.ending import EXIT_INTERRUPTED, EXIT_PROBLEMS_FOUND
from coordinator_sim.errors import ConfigError, check_new
from coordinator_sim.listening import TOKEN_VARIABLE

link_app = CommandLine(help="The network between clients and brokers: cut, slow, reset.")

_DIRECTIONS: Final = {
    "both": ("to_broker", "to_clients"),
    "to-broker": ("to_broker",),
    "to-clients": ("to_clients",),
}

BrokerOption = Annotated[int | None, typer.Option("--broker", help="By default all.", min=0)]
ListenerOption = Annotated[
    str | None, typer.Option("--listener", help="By default all.", metavar="NAME")
]


@link_app.command("list")
def link_list(context: typer.Context) -> None:
    """List every link: a broker on a listener, and what passes."""
    _table(call(context, "GET", "/v1/links"))


@link_app.command("set")
def link_set(
    context: typer.Context,
    broker: BrokerOption = None,
    listener: ListenerOption = None,
    cut: Annotated[bool, typer.Option("--cut", help="Let nothing pass.")] = False,
    latency: Annotated[int, typer.Option(help="Milliseconds.", min=0)] = 0,
    rate: Annotated[int, typer.Option(help="kbit/s of a connection; 0: no bound.", min=0)] = 0,
    direction: Annotated[
        str, typer.Option(help="What is slow.", metavar="both|to-broker|to-clients")
    ] = "both",
) -> None:
    """Cut links, or make them slow; without any option they are whole again.

    Connections stay open, and nothing is lost: what a cut holds back arrives when it heals.

    Example: coordinator-sim ctl link set --listener CLIENT_A --latency 200
    """
    ways = _DIRECTIONS.get(direction)
    if ways is None:
        raise typer.BadParameter(f"{direction!r}: use {', '.join(_DIRECTIONS)}")
    body: dict[str, Any] = {"broker": broker, "listener": listener, "cut": cut}
    body |= {way: {"latency_ms": latency, "kbit_per_s": rate} for way in ways}
    _table(call(context, "PUT", "/v1/links", body))


@link_app.command("reset")
def link_reset(
    context: typer.Context, broker: BrokerOption = None, listener: ListenerOption = None
) -> None:
    """Reset the open connections of links, as a firewall or a failing host does."""
    body = {"broker": broker, "listener": listener}
    found = call(context, "POST", "/v1/links/reset", body)
    typer.echo(f"{found['connections']} connections reset")


def _table(links: list[dict[str, Any]]) -> None:
    rows = [
        {
            **each,
            "address": f"{each['host']}:{each['port']}",
            "cut": "yes" if each["cut"] else "no",
            "to_broker": _way(each["to_broker"]),
            "to_clients": _way(each["to_clients"]),
        }
        for each in links
    ]
    names = ("broker_id", "listener", "address", "connections", "cut", "to_broker", "to_clients")
    table(rows, names)


def _way(way: dict[str, int]) -> str:
    said = []
    if way["latency_ms"]:
        said.append(f"{way['latency_ms']} ms")
    if way["kbit_per_s"]:
        said.append(f"{way['kbit_per_s']} kbit/s")
    return ", ".join(said) or "-"


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


ctl = CommandLine(
    help="Operate a running serve: brokers, topics, groups, clock, faults, waits, traces.",
    epilog="Where it is: --url, or --ready-file of the serve, or the variable "
    + URL_VARIABLE
    + ".",
    no_args_is_help=True,
)
fault_app = CommandLine(help="Fault rules: what is done to requests on purpose.")
topic_app = CommandLine(help="Topics.")
broker_app = CommandLine(help="Brokers: stop, pause, partition, resume, restart.")
trace_app = CommandLine(help="Traces of what is served.")
ctl.add_typer(fault_app, name="fault")
ctl.add_typer(topic_app, name="topic")
ctl.add_typer(broker_app, name="broker")
ctl.add_typer(link_app, name="link")
ctl.add_typer(clock_app, name="clock")
ctl.add_typer(trace_app, name="trace")

GroupArgument = Annotated[str, typer.Argument(metavar="GROUP")]
BrokerArgument = Annotated[int, typer.Argument(metavar="BROKER")]


@ctl.callback()
def place(
    context: typer.Context,
    url: Annotated[
        str, typer.Option(envvar=URL_VARIABLE, help="The `control` of the line of JSON.")
    ] = "",
    ready_file: Annotated[
        Path | None, typer.Option(help="Of the serve to operate.", metavar="FILE")
    ] = None,
    token: Annotated[str, typer.Option(envvar=TOKEN_VARIABLE, help="If it wants one.")] = "",
) -> None:
    """Say which server is meant."""
    if ready_file is not None:
        url = url_in(ready_file)
    context.obj = Place(url=url.rstrip("/"), token=token)


# -- the server ----------------------------------------------------------------------------


@ctl.command()
def status(context: typer.Context) -> None:
    """Show the cluster as a whole."""
    show(call(context, "GET", "/v1/server"))


@ctl.command()
def reset(context: typer.Context) -> None:
    """Begin anew: topics, groups and faults are gone, connections are closed."""
    show(call(context, "POST", "/v1/reset"))


@ctl.command()
def brokers(context: typer.Context) -> None:
    """List the brokers."""
    names = ("broker_id", "status", "fenced", "leads", "coordinates", "connections")
    table(call(context, "GET", "/v1/brokers"), names)


@ctl.command()
def topics(context: typer.Context) -> None:
    """List the topics."""
    found = call(context, "GET", "/v1/topics")
    rows = [{**each, "partitions": len(each["partitions"])} for each in found]
    table(rows, ("name", "partitions", "topic_id"))


@ctl.command()
def groups(context: typer.Context) -> None:
    """List the groups."""
    names = ("group_id", "state", "generation", "member_count", "protocol_name", "coordinator_id")
    table(call(context, "GET", "/v1/groups"), names)


@ctl.command()
def group(context: typer.Context, group_id: GroupArgument) -> None:
    """Show a group: members with what they own, offsets, lag."""
    found = call(context, "GET", f"/v1/groups/{quoted(group_id)}")
    members, offsets = found.pop("members"), found.pop("offsets")
    show(found)
    rows = [{**each, "assignment": " ".join(each["assignment"])} for each in members]
    typer.echo("")
    table(rows, ("member_id", "client_id", "client_host", "waits_for", "assignment"))
    typer.echo("")
    table(offsets, ("topic", "partition", "offset", "end_offset", "lag", "owner"))


@ctl.command()
def wait(
    context: typer.Context,
    group_id: GroupArgument,
    state: Annotated[str, typer.Option(help="Stable, Empty, PreparingRebalance, ...")] = "",
    members: Annotated[int | None, typer.Option(help="How many it has.")] = None,
    generation: Annotated[int | None, typer.Option(help="That it is in.")] = None,
    min_generation: Annotated[int | None, typer.Option(help="That it is in or past.")] = None,
    timeout: Annotated[float, typer.Option(help="Seconds.", min=0, max=600)] = 30,
) -> None:
    """Wait until a group is as wanted; exit code 1 if it is not within the time limit."""
    wanted = {
        "state": state or None,
        "members": members,
        "generation": generation,
        "min_generation": min_generation,
        "timeout_ms": int(timeout * 1000),
    }
    query = {name: str(value) for name, value in wanted.items() if value is not None}
    found = call(context, "GET", f"/v1/groups/{quoted(group_id)}/wait", query=query)
    typer.echo(
        f"{found['group_id']} is {found['state']} in generation {found['generation']} with "
        f"{found['member_count']} members"
    )


@ctl.command("move-coordinator")
def move_coordinator(
    context: typer.Context,
    group_id: GroupArgument,
    to: Annotated[int | None, typer.Option(help="A broker; by default the next one.")] = None,
) -> None:
    """Let another broker coordinate a group."""
    path = f"/v1/groups/{quoted(group_id)}/move-coordinator"
    show(call(context, "POST", path, {"to": to}))


@ctl.command()
def connections(context: typer.Context) -> None:
    """List the open connections of clients."""
    names = ("connection", "broker_id", "listener", "client_host", "principal", "is_working")
    table(call(context, "GET", "/v1/connections"), names)


@ctl.command()
def events(
    context: typer.Context,
    after: Annotated[int | None, typer.Option(help="Begin behind that number.")] = None,
) -> None:
    """Follow what happens, one JSON object a line, until Ctrl-C."""
    query = {} if after is None else {"after": str(after)}
    with (
        reached(context) as caller,
        caller.stream("GET", "/v1/events", params=query, timeout=None) as answer,
    ):
        for line in answer.iter_lines():
            if line.startswith("data: "):
                typer.echo(line.removeprefix("data: "))


@ctl.command()
def get(
    context: typer.Context,
    path: Annotated[str, typer.Argument(help="As /v1/clock; see /v1/openapi.json.")],
) -> None:
    """Print the JSON of any path."""
    answer = call(context, "GET", path)
    typer.echo(msgspec.json.format(msgspec.json.encode(answer), indent=2).decode())


# -- brokers -------------------------------------------------------------------------------


@broker_app.command("stop")
def broker_stop(context: typer.Context, broker_id: BrokerArgument) -> None:
    """Kill a broker's process; others lead after the election delay."""
    _broker(context, broker_id, "stop")


@broker_app.command("pause")
def broker_pause(context: typer.Context, broker_id: BrokerArgument) -> None:
    """Freeze a broker's process, its timers too."""
    _broker(context, broker_id, "pause")


@broker_app.command("partition")
def broker_partition(context: typer.Context, broker_id: BrokerArgument) -> None:
    """Cut a broker off from its clients."""
    _broker(context, broker_id, "partition")


@broker_app.command("resume")
def broker_resume(context: typer.Context, broker_id: BrokerArgument) -> None:
    """Start a stopped broker, thaw a paused one, or heal the network of one cut off."""
    _broker(context, broker_id, "resume")


@broker_app.command("restart")
def broker_restart(context: typer.Context, broker_id: BrokerArgument) -> None:
    """Stop a broker and start it at once."""
    _broker(context, broker_id, "restart")


def _broker(context: typer.Context, broker_id: int, verb: str) -> None:
    found = call(context, "POST", f"/v1/brokers/{broker_id}/{verb}")
    typer.echo(f"broker {broker_id} is {found['status']}")


# -- topics --------------------------------------------------------------------------------


@topic_app.command("create")
def topic_create(
    context: typer.Context,
    name: str,
    partitions: Annotated[int, typer.Option(min=1)] = 1,
    replication_factor: Annotated[int, typer.Option(min=0, help="0: the brokers' default.")] = 0,
) -> None:
    """Create a topic."""
    body = {"name": name, "partitions": partitions, "replication_factor": replication_factor}
    found = call(context, "POST", "/v1/topics", body)
    typer.echo(f"{found['name']} has {len(found['partitions'])} partitions")


@topic_app.command("delete")
def topic_delete(context: typer.Context, name: str) -> None:
    """Delete a topic with its records."""
    call(context, "DELETE", f"/v1/topics/{quoted(name)}")


@topic_app.command("slow-appends")
def topic_slow_appends(
    context: typer.Context,
    name: str,
    ms: Annotated[int, typer.Argument(help="Wall time; 0 for on time again.", min=0)],
    partition: Annotated[int | None, typer.Option(help="By default all.", min=0)] = None,
) -> None:
    """Let appends to a topic complete late; commits, for __consumer_offsets."""
    body = {"ms": ms, "partition": partition}
    call(context, "POST", f"/v1/topics/{quoted(name)}/slow-appends", body)
    what = name if partition is None else f"{name}-{partition}"
    typer.echo(f"appends to {what} complete {ms} ms late" if ms else f"{what} is on time")


@topic_app.command("compact")
def topic_compact(context: typer.Context, name: str, partition: int = 0) -> None:
    """Clean the log of a compacted topic's partition at once, as the cleaner does in time."""
    path = f"/v1/topics/{quoted(name)}/partitions/{partition}/compact"
    done = call(context, "POST", path, {})
    typer.echo(f"{name}-{partition} is compacted up to offset {done['end_offset']}")


# -- faults --------------------------------------------------------------------------------


@fault_app.command("list")
def fault_list(context: typer.Context) -> None:
    """List the rules with their hits."""
    rows = [
        {
            **each,
            "match": compact(each["fault"].get("match", {})),
            "phase": each["fault"].get("phase", "before"),
            "action": compact(each["fault"]["action"]),
            "times": each["fault"].get("times", ""),
        }
        for each in call(context, "GET", "/v1/faults")
    ]
    table(rows, ("fault_id", "hits", "times", "phase", "match", "action"))


@fault_app.command("add")
def fault_add(
    context: typer.Context,
    action: Annotated[
        str,
        typer.Argument(
            help="drop, lose, close, duplicate, reorder[=MS], delay=MS, error=CODE, "
            "fail-append[=CODE], slow-append=MS, move-coordinator[=BROKER]"
        ),
    ],
    match: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="KEY=VALUE...",
            help="api, group, member, role, client_id, broker, connection, min_version, "
            "max_version, nth, every, probability",
        ),
    ] = None,
    after: Annotated[bool, typer.Option("--after", help="Act on the finished answer.")] = False,
    times: Annotated[int | None, typer.Option(min=1, help="At most so often.")] = None,
    for_ms: Annotated[int | None, typer.Option(min=1, help="For so long.", metavar="MS")] = None,
) -> None:
    """Add a rule.

    Example: coordinator-sim ctl fault add error=NOT_COORDINATOR api=Heartbeat group=app --times 2
    """
    fault: dict[str, Json] = {"action": _action(action), "match": _match(match or [])}
    if after:
        fault["phase"] = "after"
    if times is not None:
        fault["times"] = times
    if for_ms is not None:
        fault["for_ms"] = for_ms
    typer.echo(f"rule {call(context, 'POST', '/v1/faults', fault)['fault_id']}")


@fault_app.command("remove")
def fault_remove(context: typer.Context, fault_id: int) -> None:
    """Take a rule out, and say how often it acted."""
    found = call(context, "DELETE", f"/v1/faults/{fault_id}")
    typer.echo(f"rule {fault_id} acted {found['hits']} times")


@fault_app.command("clear")
def fault_clear(context: typer.Context) -> None:
    """Take every rule out."""
    call(context, "DELETE", "/v1/faults")


_PARAMETERS: Final = {
    "delay": "ms",
    "error": "error",
    "fail-append": "error",
    "slow-append": "ms",
    "reorder": "ms",
    "move-coordinator": "to",
}
_ACTIONS: Final = ("drop", "lose", "close", *_PARAMETERS, "duplicate")
_MATCHES: Final = (
    "api",
    "group",
    "member",
    "role",
    "client_id",
    "broker",
    "connection",
    "min_version",
    "max_version",
    "nth",
    "every",
    "probability",
)
_NUMBERS: Final = (
    *("ms", "to", "broker", "connection", "min_version", "max_version", "nth", "every"),
)


def _action(text: str) -> dict[str, Json]:
    name, equals, value = text.partition("=")
    if name not in _ACTIONS:
        raise ConfigError(f"{text}: wants one of {', '.join(_ACTIONS)}")
    action: dict[str, Json] = {"do": name}
    if equals:
        parameter = _PARAMETERS.get(name)
        if parameter is None:
            raise ConfigError(f"{text}: {name} takes no value")
        action[parameter] = _value(parameter, value)
    return action


def _match(pairs: list[str]) -> dict[str, Json]:
    match: dict[str, Json] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals:
            raise ConfigError(f"{pair}: wants KEY=VALUE, as api=Heartbeat")
        if key not in _MATCHES:
            raise ConfigError(f"{pair}: a rule fits by {', '.join(_MATCHES)}")
        check_new(key, match, pair)
        match[key] = _value(key, value)
    return match


def _value(name: str, text: str) -> str | int | float:
    try:
        if name in _NUMBERS:
            return int(text)
        return float(text) if name == "probability" else text
    except ValueError:
        raise ConfigError(f"{name}={text}: wants a number") from None


# -- traces --------------------------------------------------------------------------------


@trace_app.command("start")
def trace_start(
    context: typer.Context,
    directory: Annotated[
        Path | None, typer.Argument(help="Of the server's machine; by default a temporary one.")
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an earlier trace there.")
    ] = False,
    name: Annotated[str | None, typer.Option(help="What reports call the run.")] = None,
) -> None:
    """Record what is served from now on."""
    where = None if directory is None else str(directory.absolute())
    body = {"directory": where, "overwrite": overwrite, "name": name}
    found = call(context, "POST", "/v1/trace/start", body)
    typer.echo(found["directory"])


@trace_app.command("mark")
def trace_mark(
    context: typer.Context,
    what: Annotated[str, typer.Argument(help="A name, such as TaskRunning.")],
    attrs: Annotated[list[str] | None, typer.Argument(metavar="[KEY=VALUE]...")] = None,
) -> None:
    """Put a FAULT event into the trace, with the present as its time."""
    marks: dict[str, str] = {}
    for each in attrs or ():
        key, separator, value = each.partition("=")
        if not separator:
            raise ConfigError(f"{each}: give KEY=VALUE")
        check_new(key, marks, each)
        marks[key] = value
    body = {"what": what, "attrs": marks}
    show(call(context, "POST", "/v1/trace/mark", body))


@trace_app.command("stop")
def trace_stop(context: typer.Context) -> None:
    """End the recording; its directory is a whole trace then."""
    found = call(context, "POST", "/v1/trace/stop")
    if found["directory"] is None:
        raise ConfigError("no trace is recorded: begin one by ctl trace start")
    typer.echo(f"{found['events']} events in {found['directory']}")


@trace_app.command("download")
def trace_download(context: typer.Context, file: Path) -> None:
    """Write the events of the last finished trace to a file, one JSON object a line."""
    with reached(context) as caller, caller.stream("GET", "/v1/trace/events.jsonl") as answer:
        if answer.is_error:
            answer.read()
            fail(answer)
        with file.open("wb") as out:
            for part in answer.iter_bytes():
                out.write(part)
