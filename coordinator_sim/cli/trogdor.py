"""`trogdor`: a coordinator, agents and clients of Trogdor, with the words of Kafka's own.

`trogdor client` and `trogdor agent-client`: what Kafka's clients of Trogdor print and exit with.

Source: kafka trunk, trogdor/.../trogdor: the `main` of Coordinator, Agent, CoordinatorClient and
AgentClient; trogdor/.../trogdor: coordinator/CoordinatorClient.java, agent/AgentClient.java,
common/StringFormatter.java.
"""

import asyncio
import os
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator_sim.cli.command_line import CommandLine
from coordinator_sim.errors import INVALID_PATTERN, ConfigError, needing
from coordinator_sim.listening import TOKEN_VARIABLE

if TYPE_CHECKING:
    from coordinator_sim.live.trogdor.client import TrogdorClient
    from coordinator_sim.trogdor.contract import Quirks
    from coordinator_sim.trogdor.messages import TasksResponse, UptimeResponse
    from coordinator_sim.trogdor.states import TaskPhase, TaskState, WorkerState


client = CommandLine(help="Ask a Trogdor coordinator, ours or Kafka's.", no_args_is_help=True)
agent_client = CommandLine(help="Ask a Trogdor agent, ours or Kafka's.", no_args_is_help=True)

TargetOption = Annotated[
    str, typer.Option("--target", "-t", help="Where it listens.", metavar="HOST:PORT")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print the answer as JSON.")]
TaskOption = Annotated[str, typer.Option("--id", "-i", help="The task.", metavar="TASK_ID")]
WorkerOption = Annotated[int, typer.Option("--workerId", "-i", help="The worker.")]
SpecOption = Annotated[
    str,
    typer.Option(
        "--spec", "-s", help="A task spec, or the path of a file with one.", metavar="TASK_SPEC"
    ),
]


# -- a coordinator ---------------------------------------------------------------------------------


@client.command("uptime", short_help="When the coordinator began.")
def coordinator_uptime(target: TargetOption, json: JsonOption = False) -> None:
    """Print when the coordinator began, and for how long it has been running."""
    _print_uptime("Coordinator", target, _client(target).coordinator_uptime(), json=json)


@client.command("status", short_help="Whether the coordinator runs.")
def coordinator_status(target: TargetOption, json: JsonOption = False) -> None:
    """Print that the coordinator runs, and since when."""
    found = _client(target).coordinator_status()
    if json:
        _print_json(found)
        return
    typer.echo(f"Coordinator is running at {target}.")
    typer.echo(f"\tStart time: {date_string(found.server_start_ms)}")


@client.command("showTask", short_help="Show a task.")
def show_task(
    target: TargetOption,
    task_id: TaskOption,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Print everything.")] = False,
    show_status: Annotated[
        bool, typer.Option("--show-status", "-S", help="Print the task's status.")
    ] = False,
    json: JsonOption = False,
) -> None:
    """Show one task. Exit code 1 for an unknown id."""
    from coordinator_sim.trogdor.refusals import TrogdorRefusal

    try:
        found = _client(target).task(task_id)
    except TrogdorRefusal as refusal:
        if refusal.code != 404:  # noqa: PLR2004 - not found
            raise
        typer.echo(f"Task {task_id} was not found.")
        raise typer.Exit(1) from None
    if json:
        _print_json(found)
        return
    kind = _class_name(found)
    typer.echo(f"Task {task_id} of type {kind} is {found.state.value}. {task_info(found)}")
    if found.error:
        typer.echo(f"Error: {found.error}")
    if verbose:
        typer.echo(f"Spec: {_pretty(found.spec)}\n")
    if verbose or show_status:
        typer.echo(f"Status: {_pretty(found.status)}\n")


@client.command("showTasks", short_help="Show many tasks.")
def show_tasks(
    target: TargetOption,
    task_ids: Annotated[
        list[str] | None,
        typer.Option("--id", "-i", help="Only this task; may be repeated.", metavar="TASK_ID"),
    ] = None,
    id_pattern: Annotated[
        str, typer.Option("--id-pattern", help="Only tasks whose id matches.", metavar="REGEX")
    ] = "",
    state: Annotated[
        str,
        typer.Option(
            "--state", "-s", help="Only tasks in this state.", metavar="PENDING|RUNNING|..."
        ),
    ] = "",
    json: JsonOption = False,
) -> None:
    """Show all tasks, or those that match. Exit code 1 when there is none."""
    from coordinator_sim.trogdor.messages import TasksResponse

    if task_ids and id_pattern:
        raise ConfigError("--id and --id-pattern exclude each other: leave one out")
    found = _client(target).tasks(tuple(task_ids or ()), _phase(state))
    if id_pattern:
        try:
            wanted = re.compile(id_pattern)
        except INVALID_PATTERN as error:
            raise ConfigError(f"--id-pattern is {id_pattern!r}: {error}") from None
        kept = {each: task for each, task in found.tasks.items() if wanted.fullmatch(each)}
        found = TasksResponse(tasks=kept)
    if json:
        _print_json(found)
    else:
        typer.echo(_tasks_text(found))
    if not found.tasks:
        raise typer.Exit(1)


@client.command("createTask", short_help="Create a task.")
def create_task(target: TargetOption, task_id: TaskOption, spec: SpecOption) -> None:
    """Create a task. Exit code 1 when its id has another spec."""
    from coordinator_sim.live.trogdor.configuration import read_spec
    from coordinator_sim.trogdor.refusals import TrogdorRefusal

    try:
        _client(target).create_task(task_id, read_spec(spec))
    except TrogdorRefusal as refusal:
        if refusal.code != 409:  # noqa: PLR2004 - conflict
            raise
        typer.echo(
            f"CreateTaskRequest for task {task_id} got a 409 status code - a task with the same "
            f"ID but a different specification already exists.\nException: {refusal.message}"
        )
        raise typer.Exit(1) from None
    typer.echo(f"Sent CreateTaskRequest for task {task_id}.")


@client.command("stopTask", short_help="Stop a task.")
def stop_task(target: TargetOption, task_id: TaskOption) -> None:
    """Stop a task; nothing happens where there is none."""
    _client(target).stop_task(task_id)
    typer.echo(f"Sent StopTaskRequest for task {task_id}.")


@client.command("destroyTask", short_help="Forget a task.")
def destroy_task(target: TargetOption, task_id: TaskOption) -> None:
    """Stop and forget a task; nothing happens where there is none."""
    _client(target).destroy_task(task_id)
    typer.echo(f"Sent DestroyTaskRequest for task {task_id}.")


@client.command("shutdown", short_help="End the coordinator.")
def shut_down_coordinator(
    target: TargetOption,
    stop_agents: Annotated[bool, typer.Option("--stop-agents", help="End its agents too.")] = False,
) -> None:
    """End the coordinator; its agents go on with what they do unless they are ended too."""
    _client(target).shut_down_coordinator(stop_agents=stop_agents)
    typer.echo("Sent ShutdownRequest.")


# -- an agent --------------------------------------------------------------------------------------


@agent_client.command("uptime", short_help="When the agent began.")
def agent_uptime(target: TargetOption, json: JsonOption = False) -> None:
    """Print when the agent began, and for how long it has been running."""
    _print_uptime("Agent", target, _client(target).agent_uptime(), json=json)


@agent_client.command("status", short_help="Show the agent's workers.")
def agent_status(target: TargetOption, json: JsonOption = False) -> None:
    """Show the workers of an agent."""
    found = _client(target).agent_status()
    if json:
        _print_json(found)
        return
    typer.echo(f"Agent is running at {target}.")
    typer.echo(f"\tStart time: {date_string(found.server_start_ms)}")
    rows = [
        (str(worker_id), each.task_id, f"Worker{each.state.value.capitalize()}", _class_name(each))
        for worker_id, each in found.workers.items()
    ]
    typer.echo(grid([("WORKER_ID", "TASK_ID", "STATE", "TASK_TYPE"), *rows]))


@agent_client.command("createWorker", short_help="Create a worker.")
def create_worker(
    target: TargetOption,
    worker_id: WorkerOption,
    task_id: Annotated[str, typer.Option("--taskId", help="Its task.", metavar="TASK_ID")],
    spec: SpecOption,
) -> None:
    """Create a worker on an agent, without a coordinator."""
    from coordinator_sim.live.trogdor.configuration import read_spec

    _client(target).create_worker(worker_id, task_id, read_spec(spec))
    typer.echo(f"Sent CreateWorkerRequest for worker {worker_id}.")


@agent_client.command("stopWorker", short_help="Stop a worker.")
def stop_worker(target: TargetOption, worker_id: WorkerOption) -> None:
    """Stop a worker; nothing happens where there is none."""
    _client(target).stop_worker(worker_id)
    typer.echo(f"Sent StopWorkerRequest for worker {worker_id}.")


@agent_client.command("destroyWorker", short_help="Stop and forget a worker.")
def destroy_worker(target: TargetOption, worker_id: WorkerOption) -> None:
    """Stop and forget a worker; nothing happens where there is none."""
    _client(target).destroy_worker(worker_id)
    typer.echo(f"Sent DestroyWorkerRequest for worker {worker_id}.")


@agent_client.command("shutdown", short_help="End the agent.")
def shut_down_agent(target: TargetOption) -> None:
    """End an agent; its work is stopped, and its faults are undone."""
    _client(target).shut_down_agent()
    typer.echo("Sent ShutdownRequest.")


# -- texts -----------------------------------------------------------------------------------------


def date_string(at_ms: int) -> str:
    """An instant in the local time zone, such as `2026-01-01T00:00:00.25+01:00`."""
    at = datetime.fromtimestamp(at_ms // 1_000, UTC).astimezone()
    fraction = f".{at_ms % 1_000:03}".rstrip("0").rstrip(".")
    zone = at.isoformat()[19:]
    return f"{at.isoformat()[:19]}{fraction}{'Z' if zone == '+00:00' else zone}"


def duration_string(for_ms: int) -> str:
    """A duration, such as `1h2m` or `0s`; milliseconds are left out."""
    seconds = for_ms // 1_000
    hours, minutes, seconds = seconds // 3_600, seconds // 60 % 60, seconds % 60
    text = (f"{hours}h" if hours > 0 else "") + (f"{minutes}m" if minutes > 0 else "")
    return f"{text}{seconds}s" if seconds or not text else text


def grid(rows: Sequence[Sequence[str]]) -> str:
    """Rows of equal length in columns, each one wider than its longest entry."""
    widths = [max(len(row[column]) for row in rows) + 1 for column in range(len(rows[0]))]
    return "\n".join(
        "".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) for row in rows
    )


def task_info(task: "TaskState") -> str:
    """What a task's state means, in a sentence."""
    spec = task.spec
    match task.state.value:
        case "PENDING":
            return f"Will start at {date_string(spec.start_ms)}"
        case "RUNNING":
            after = duration_string(spec.duration_ms)
            return f"Started {date_string(task.started_ms)}; will stop after {after}"
        case "STOPPING":
            return f"Started {date_string(task.started_ms)}"
    verdict = "FAILED" if task.error else "CANCELLED" if task.cancelled else "FINISHED"
    took = duration_string(task.done_ms - task.started_ms)
    return f"{verdict} at {date_string(task.done_ms)} after {took}"


def _tasks_text(found: "TasksResponse") -> str:
    if not found.tasks:
        return "No matching tasks found."
    rows = [
        (task_id, _class_name(task), task.state.value, task_info(task))
        for task_id, task in found.tasks.items()
    ]
    return grid([("ID", "TYPE", "STATE", "INFO"), *rows])


def _print_uptime(what: str, target: str, found: "UptimeResponse", *, json: bool) -> None:
    if json:
        _print_json(found)
        return
    typer.echo(f"{what} is running at {target}.")
    typer.echo(f"\tStart time: {date_string(found.server_start_ms)}")
    typer.echo(f"\tCurrent server time: {date_string(found.now_ms)}")
    typer.echo(f"\tUptime: {duration_string(found.now_ms - found.server_start_ms)}")


def _class_name(task: "TaskState | WorkerState") -> str:
    """The Java class of a task's spec."""
    from coordinator_sim.trogdor.specs import class_of

    return class_of(task.spec)


def _print_json(value: object) -> None:
    from coordinator_sim.trogdor import jackson

    typer.echo(jackson.write(value))


def _pretty(value: object) -> str:
    from coordinator_sim.trogdor import jackson

    return jackson.pretty(value)


def _phase(state: str) -> "TaskPhase | None":
    from coordinator_sim.trogdor.states import TaskPhase

    if not state:
        return None
    try:
        return TaskPhase(state)
    except ValueError:
        known = ", ".join(each.value for each in TaskPhase)
        raise ConfigError(f"--state is {state!r}; give one of {known}") from None


def _client(target: str) -> "TrogdorClient":
    with needing("live", "trogdor"):
        from coordinator_sim.live.trogdor.client import TrogdorClient

    return TrogdorClient(target, os.environ.get(TOKEN_VARIABLE, ""))


trogdor = CommandLine(
    help="Run fault and workload tasks on nodes, beside or instead of Kafka's Trogdor.",
    no_args_is_help=True,
)
trogdor.add_typer(client, name="client", short_help="Ask a coordinator.")
trogdor.add_typer(agent_client, name="agent-client", short_help="Ask an agent.")

NodeOption = Annotated[
    str, typer.Option("--node-name", "-n", help="The node that this process is on.")
]
QuirksOption = Annotated[
    str,
    typer.Option(
        help="kafka: tasks may hang where those of Kafka's do; fixed: they end.",
        metavar="kafka|fixed",
    ),
]
TokenOption = Annotated[
    str,
    typer.Option(
        envvar=TOKEN_VARIABLE,
        help="What callers must have; needed off the loopback address. Agents get it, too.",
    ),
]
CommandsOption = Annotated[
    bool,
    typer.Option("--allow-commands", help="Run the programs of ExternalCommand tasks."),
]


@trogdor.command(short_help="Be a coordinator.")
def coordinator(
    config: Annotated[
        Path, typer.Option("--coordinator.config", "-c", help="The nodes, as Trogdor reads them.")
    ],
    node_name: NodeOption,
    quirks: QuirksOption = "kafka",
    control_token: TokenOption = "",
) -> None:
    """Be the coordinator of a cluster, until SIGTERM or a shutdown request.

    Example: coordinator-sim trogdor coordinator -c trogdor.json -n node0
    """
    with needing("live", "trogdor"):
        from coordinator_sim.live.trogdor.configuration import read_configuration
        from coordinator_sim.live.trogdor.daemons import serve_coordinator

    topology = read_configuration(config)
    asyncio.run(
        serve_coordinator(
            topology,
            node_name,
            quirks=_quirks(quirks),
            told=typer.echo,
            ready=lambda port: typer.echo(
                f"coordinator of {len(topology.nodes)} nodes on port {port}"
            ),
            token=control_token,
        )
    )


@trogdor.command(short_help="Be an agent, or run one task.")
def agent(
    config: Annotated[
        Path, typer.Option("--agent.config", "-c", help="The nodes, as Trogdor reads them.")
    ],
    node_name: NodeOption,
    task_spec: Annotated[
        str,
        typer.Option(
            "--exec",
            "-e",
            help="Run this task and end: a spec, or the path of a file with one.",
            metavar="TASK_SPEC",
        ),
    ] = "",
    allow_sudo: Annotated[
        bool, typer.Option("--allow-sudo", help="Run commands as root instead of telling them.")
    ] = False,
    any_process: Annotated[
        bool,
        typer.Option("--any-process", help="Stop any process, not only what the agent started."),
    ] = False,
    allow_commands: CommandsOption = False,
    quirks: QuirksOption = "kafka",
    control_token: TokenOption = "",
) -> None:
    """Be the agent of a node, until SIGTERM or a shutdown request; faults are undone first.

    Exit code 1 when the task of --exec failed.

    Example: coordinator-sim trogdor agent -c trogdor.json -n node1
    """
    with needing("live", "trogdor"):
        from coordinator_sim.live.trogdor.configuration import read_configuration, read_spec
        from coordinator_sim.live.trogdor.daemons import run_task, serve_agent
        from coordinator_sim.live.trogdor.host_platform import Allowed

    topology = read_configuration(config)
    allowed = Allowed(
        sudo=allow_sudo, any_process=any_process, commands=allow_commands, token=control_token
    )
    if task_spec:
        spec = read_spec(task_spec)
        task = run_task(topology, node_name, spec, allowed=allowed, say=typer.echo)
        raise typer.Exit(0 if asyncio.run(task) else 1)
    asyncio.run(
        serve_agent(
            topology,
            node_name,
            quirks=_quirks(quirks),
            allowed=allowed,
            told=typer.echo,
            ready=lambda port: typer.echo(f"agent of {node_name} on port {port}"),
        )
    )


@trogdor.command("run", short_help="Run a task file for real.")
def run_for_real(
    file: Annotated[
        str, typer.Argument(help="Catalogue name, or a task file.", metavar="TASK_FILE")
    ],
    out: Annotated[Path, typer.Option(help="Directory of the trace.")] = Path("out/real"),
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace an earlier trace there.")
    ] = False,
    allow_commands: CommandsOption = False,
) -> None:
    """Run a task file for real on this host, in the time that it takes.

    A cluster is served, with a coordinator and an agent for each node of the file; workloads are
    processes around librdkafka. Exit code 1 when a task failed.

    Example: coordinator-sim trogdor run bench-under-faults --out out/real
    """
    with needing("live", "trogdor"):
        from coordinator_sim.live.trogdor.rehearsal import Rehearsal
    from coordinator_sim.cli.arguments import find_task_file
    from coordinator_sim.cli.uris import session_for_uris
    from coordinator_sim.sim.scenario.files import load_plan

    with session_for_uris([file]) as spark:
        plan = load_plan(find_task_file(file, spark))
    rehearsal = Rehearsal(
        plan, out, overwrite=overwrite, say=typer.echo, allow_commands=allow_commands
    )
    failed = asyncio.run(rehearsal.run())
    typer.echo(f"trace: {out}   (coordinator-sim report {out})")
    if failed:
        typer.echo(f"failed: {', '.join(failed)}")
        raise typer.Exit(1)


def _quirks(name: str) -> "Quirks":
    from coordinator_sim.trogdor.contract import Quirks

    try:
        return Quirks(name)
    except ValueError:
        known = " or ".join(each.value for each in Quirks)
        raise ConfigError(f"--quirks is {name!r}; give {known}") from None
