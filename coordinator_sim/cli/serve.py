"""`serve`: a Kafka cluster around the group coordinator, for real clients."""

from typing import TYPE_CHECKING, Annotated

import typer

from coordinator_sim.errors import ConfigError

if TYPE_CHECKING:
    from coordinator_sim.server.kafka_server import KafkaServer

MAX_PORT = 65_535
MAX_BROKERS = 1_000


def serve(
    host: Annotated[str, typer.Option(help="Address to bind.")] = "127.0.0.1",
    port: Annotated[
        int,
        typer.Option(min=0, max=MAX_PORT, help="Of broker 1, the others follow; 0: free ones."),
    ] = 9092,
    brokers: Annotated[int, typer.Option(min=1, max=MAX_BROKERS, help="How many.")] = 1,
    profile: Annotated[str, typer.Option(help="The Kafka to behave like.")] = "4.4",
    topics: Annotated[
        str, typer.Option(help="Topics to begin with.", metavar="NAME:PARTITIONS,...")
    ] = "",
    seed: Annotated[int, typer.Option(help="Of member ids and whatever else is drawn.")] = 0,
) -> None:
    """Serve a Kafka cluster with the simulated group coordinator, until Ctrl-C or SIGTERM.

    Example: coordinator-sim serve --port 9092 --topics orders:6
    """
    from coordinator_sim.mini_broker.settings import ClusterSettings
    from coordinator_sim.protocol.profiles import profile_named
    from coordinator_sim.server.serving import ServeOptions, run

    options = ServeOptions(
        cluster=ClusterSettings(
            profile=profile_named(profile), broker_ids=tuple(range(1, brokers + 1)), seed=seed
        ),
        host=host,
        port=port,
        topics=_parse_topics(topics),
    )
    run(options, _tell)


def _parse_topics(text: str) -> dict[str, int]:
    topics: dict[str, int] = {}
    for part in filter(None, text.split(",")):
        name, _, count = part.partition(":")
        if not name or not count.isdecimal() or int(count) == 0:
            raise ConfigError(f"--topics {part!r}: write NAME:PARTITIONS, such as orders:6")
        topics[name] = int(count)
    return topics


def _tell(server: "KafkaServer") -> None:
    found = server.endpoints.values()
    typer.echo("bootstrap " + ",".join(f"{each.host}:{each.port}" for each in found))
