"""Task specs as the JSON that a client sends.

Instants are on the coordinator's clock, which stands at 0 when a case begins.
"""

from typing import Final

from coordinator_sim_conformance.trogdor_cases.trogdor import Json, Trogdor

PACKAGE: Final = "org.apache.kafka.trogdor"
NODE: Final = "node02"
"""The node with the agent, unless a case has others."""
FOREVER_MS: Final = 2**63 - 1


def no_op(*, start_ms: int, duration_ms: int) -> Json:
    """A task that does nothing, on every agent."""
    return _spec("task.NoOpTaskSpec", start_ms, duration_ms)


def sample(*, start_ms: int, duration_ms: int, **wishes: Json) -> Json:
    """A task of every agent that does what the wishes say, by the names of `SampleTaskSpec`."""
    return _spec("task.SampleTaskSpec", start_ms, duration_ms) | wishes


def partition(*sides: list[str], start_ms: int, duration_ms: int) -> Json:
    """A network partition between sides."""
    return _spec("fault.NetworkPartitionFaultSpec", start_ms, duration_ms) | {
        "partitions": list(sides)
    }


def process_stop(*nodes: str, process: str, start_ms: int, duration_ms: int) -> Json:
    """A fault that stops the Java processes of a name on nodes."""
    return _spec("fault.ProcessStopFaultSpec", start_ms, duration_ms) | {
        "nodeNames": list(nodes),
        "javaProcessName": process,
    }


def slow_network(*, device: str, rate_kbit: int, start_ms: int, duration_ms: int) -> Json:
    """A network device of the one node that is limited to a rate."""
    limits = {"networkDevice": device, "rateLimitKbit": rate_kbit}
    return _spec("fault.DegradedNetworkFaultSpec", start_ms, duration_ms) | {
        "nodeSpecs": {NODE: limits}
    }


def unreadable_files(*, mount: str, prefix: str) -> Json:
    """A fault for quarter of an hour that makes reading files fail with EIO."""
    return _spec("fault.FilesUnreadableFaultSpec", 0, 900_000) | {
        "nodeNames": ["x"],
        "mountPath": mount,
        "prefix": prefix,
        "errorCode": 5,
    }


def external_command(*command: str, duration_ms: int, **settings: Json) -> Json:
    """A command that the one agent runs at once."""
    return (
        _spec("workload.ExternalCommandSpec", 0, duration_ms)
        | {"commandNode": NODE, "command": list(command)}
        | settings
    )


def consume(*topics: str, start_ms: int, duration_ms: int) -> Json:
    """A consumer that names no node."""
    return _spec("workload.ConsumeBenchSpec", start_ms, duration_ms) | {
        "activeTopics": list(topics)
    }


def produce(*, key_generator: Json, start_ms: int, duration_ms: int) -> Json:
    """A producer on the one node."""
    return _spec("workload.ProduceBenchSpec", start_ms, duration_ms) | {
        "producerNode": NODE,
        "keyGenerator": key_generator,
    }


def consume_at(
    trogdor: Trogdor, *topics: str, start_ms: int, duration_ms: int, **settings: Json
) -> Json:
    """A consumer on the one node, at the cluster of a Trogdor, with settings of its spec."""
    where = {"consumerNode": NODE, "bootstrapServers": trogdor.bootstrap}
    return consume(*topics, start_ms=start_ms, duration_ms=duration_ms) | where | settings


def round_trip_at(trogdor: Trogdor, *, start_ms: int, duration_ms: int, **settings: Json) -> Json:
    """A producer and a consumer on the one node, as for `consume_at`."""
    where = {"clientNode": NODE, "bootstrapServers": trogdor.bootstrap}
    return _spec("workload.RoundTripWorkloadSpec", start_ms, duration_ms) | where | settings


def starting_at(spec: Json, start_ms: int) -> Json:
    """The same spec with another start."""
    return spec | {"startMs": start_ms}


def _spec(name: str, start_ms: int, duration_ms: int) -> Json:
    return {"class": f"{PACKAGE}.{name}", "startMs": start_ms, "durationMs": duration_ms}
