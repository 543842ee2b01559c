"""`trogdor`: a coordinator, agents and clients of Trogdor, with the words of Kafka's own.

Source: kafka trunk, trogdor/.../trogdor: the `main` of Coordinator, Agent, CoordinatorClient and
AgentClient.
"""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator_sim.cli.command_line import CommandLine
from coordinator_sim.cli.trogdor_clients import agent_client, client
from coordinator_sim.errors import ConfigError, needing
from coordinator_sim.listening import TOKEN_VARIABLE

if TYPE_CHECKING:
    from coordinator_sim.trogdor.contract import Quirks

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
    from coordinator_sim.sim.scenario.files import load_plan

    plan = load_plan(find_task_file(file))
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
