"""Specs of workloads.

Maps of client settings are strings to strings. Precedence: the worker's own defaults, then
`common_client_conf`, then the setting's own map. `admin_client_conf` serves the making of topics.

Source: kafka 4.3, trogdor/.../trogdor/workload/*Spec.java.
"""

import re
from collections.abc import Mapping
from enum import Enum, unique
from typing import Any, Final

from msgspec import field
from msgspec.structs import force_setattr

from coordinator_sim.kafka.orders.iteration_order import java_hash_order
from coordinator_sim.trogdor import generator_specs
from coordinator_sim.trogdor.java_numbers import Int
from coordinator_sim.trogdor.refusals import TrogdorRefusal
from coordinator_sim.trogdor.specs import TaskSpec
from coordinator_sim.trogdor.string_expander import InvalidName, check_count, expand_repeatedly
from coordinator_sim.trogdor.topic_specs import TopicsSpec

_CONSUMED_NAME: Final = re.compile("[^:]+(:[0-9]+|[^:]*)")
"""A topic, or a topic and a partition. Source: ConsumeBenchSpec."""


class ProduceBenchSpec(
    TaskSpec,
    frozen=True,
    kw_only=True,
    tag="org.apache.kafka.trogdor.workload.ProduceBenchSpec",
):
    """Produces at a rate.

    Args:
        producer_node: Where it runs.
        target_messages_per_sec: At least 10 in effect.
        max_messages: After which it is over.
        key_generator: By default the position, in 4 bytes.
        value_generator: By default 512 zeros.
        transaction_generator: None for no transactions.
        active_topics: Made, and produced to.
        inactive_topics: Made only.
        use_configured_partitioner: Whether the producer chooses partitions, rather than in turn.
        skip_flush: Whether to leave out the flush at each change of window.
    """

    producer_node: str = ""
    bootstrap_servers: str = ""
    target_messages_per_sec: Int = 0
    max_messages: int = 0
    key_generator: generator_specs.PayloadGenerator = field(
        default_factory=lambda: generator_specs.SequentialPayloadGenerator(size=4)
    )
    value_generator: generator_specs.PayloadGenerator = field(
        default_factory=lambda: generator_specs.ConstantPayloadGenerator(size=512)
    )
    transaction_generator: generator_specs.TransactionGenerator | None = None
    producer_conf: Mapping[str, str] = {}
    common_client_conf: Mapping[str, str] = {}
    admin_client_conf: Mapping[str, str] = {}
    active_topics: TopicsSpec = TopicsSpec()
    inactive_topics: TopicsSpec = TopicsSpec()
    use_configured_partitioner: bool = False
    skip_flush: bool = False


class ConsumeBenchSpec(
    TaskSpec,
    frozen=True,
    kw_only=True,
    tag="org.apache.kafka.trogdor.workload.ConsumeBenchSpec",
):
    """Consumes at a rate.

    Args:
        consumer_node: Where it runs.
        target_messages_per_sec: 0 or less for no bound.
        max_messages: Of each consumer, after which it is over.
        consumer_group: Empty for a group of its own for each consumer.
        threads_per_worker: Consumers, a thread each.
        record_processor: None for none.
        active_topics: Names, ranges of names, or either with a partition: `foo[1-3]:[0-2]`.
    """

    consumer_node: str = ""
    bootstrap_servers: str = ""
    target_messages_per_sec: Int = 0
    max_messages: int = 0
    consumer_group: str = ""
    consumer_conf: Mapping[str, str] = {}
    common_client_conf: Mapping[str, str] = {}
    admin_client_conf: Mapping[str, str] = {}
    threads_per_worker: Int = 1
    record_processor: generator_specs.RecordProcessor | None = None
    active_topics: tuple[str, ...] = ()

    def materialize_topics(self) -> dict[str, tuple[int, ...]]:
        """Topic -> the partitions that are named; no partitions for a topic to subscribe to.

        The order is that of Java's hash map, and of its sets of expanded names.

        Raises:
            InvalidName: a name is neither a topic nor a topic and a partition, or has a range that
                cannot be, or they are too many.
        """
        check_count(self.active_topics, repeatedly=True)
        found: dict[str, list[int]] = {}
        for given in self.active_topics:
            names = expand_repeatedly(given)
            # QUIRK: only the first name of a range is looked at. Source: materializeTopics.
            if not _CONSUMED_NAME.fullmatch(names[0]):
                raise InvalidName(f"Expanded topic name {given} is invalid")
            for name in names:
                topic, _, partition = name.partition(":")
                partitions = found.setdefault(topic, [])
                if partition:
                    partitions.append(int(partition))
        return {topic: tuple(found[topic]) for topic in java_hash_order(found)}


class ShareConsumeBenchSpec(
    TaskSpec,
    frozen=True,
    kw_only=True,
    tag="org.apache.kafka.trogdor.workload.ShareConsumeBenchSpec",
):
    """Consumes at a rate, in a share group; since Kafka 4.1.

    Args:
        consumer_node: Where it runs.
        target_messages_per_sec: 0 or less for no bound.
        max_messages: Of each consumer, after which it is over.
        share_group: The group; `share` when none is named. QUIRK: the empty name is kept, but not
            written, so an agent takes it for `share`.
        threads_per_worker: Consumers, a thread each.
        record_processor: None for none.
        active_topics: Names or ranges of names, without partitions.
    """

    consumer_node: str = ""
    bootstrap_servers: str = ""
    target_messages_per_sec: Int = 0
    max_messages: int = 0
    share_group: str = "share"
    consumer_conf: Mapping[str, str] = {}
    common_client_conf: Mapping[str, str] = {}
    admin_client_conf: Mapping[str, str] = {}
    threads_per_worker: Int = 1
    record_processor: generator_specs.RecordProcessor | None = None
    active_topics: tuple[str, ...] = ()


class ConfigurableProducerSpec(
    TaskSpec,
    frozen=True,
    kw_only=True,
    tag="org.apache.kafka.trogdor.workload.ConfigurableProducerSpec",
):
    """Produces to one topic, by generators of everything.

    Args:
        producer_node: Where it runs.
        flush_generator: None for no flushes.
        throughput_generator: The worker fails without it.
        key_generator: The worker fails without it.
        value_generator: The worker fails without it.
        active_topic: One topic after ranges are expanded; required.
        active_partition: -1 for any.
    """

    producer_node: str = ""
    bootstrap_servers: str = ""
    flush_generator: generator_specs.FlushGenerator | None = None
    throughput_generator: generator_specs.ThroughputGenerator | None = None
    key_generator: generator_specs.PayloadGenerator | None = None
    value_generator: generator_specs.PayloadGenerator | None = None
    producer_conf: Mapping[str, str] = {}
    common_client_conf: Mapping[str, str] = {}
    admin_client_conf: Mapping[str, str] = {}
    active_topic: TopicsSpec | None = None
    active_partition: Int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.active_topic is None:
            raise TrogdorRefusal(400, "activeTopic is absent: name the topic to produce to")


class RoundTripWorkloadSpec(
    TaskSpec,
    frozen=True,
    kw_only=True,
    tag="org.apache.kafka.trogdor.workload.RoundTripWorkloadSpec",
):
    """Produces, and reads what it produced.

    Args:
        client_node: Where it runs.
        target_messages_per_sec: The worker fails unless it is above 0.
        value_generator: By default 32 bytes, random but for the last 10.
        active_topics: Made and used.
        max_messages: How many go round.
    """

    client_node: str = ""
    bootstrap_servers: str = ""
    common_client_conf: Mapping[str, str] = {}
    admin_client_conf: Mapping[str, str] = {}
    consumer_conf: Mapping[str, str] = {}
    producer_conf: Mapping[str, str] = {}
    target_messages_per_sec: Int = 0
    value_generator: generator_specs.PayloadGenerator = field(
        default_factory=lambda: generator_specs.UniformRandomPayloadGenerator(
            size=32, seed=123, padding=10
        )
    )
    active_topics: TopicsSpec = TopicsSpec()
    max_messages: int = 0


@unique
class ConnectionStressAction(Enum):
    """What a connection is opened for; in Java's order, whose numbers are read too."""

    CONNECT = "CONNECT"
    FETCH_METADATA = "FETCH_METADATA"


class ConnectionStressSpec(
    TaskSpec,
    frozen=True,
    kw_only=True,
    tag="org.apache.kafka.trogdor.workload.ConnectionStressSpec",
):
    """Opens connections at a rate and closes them.

    Args:
        client_node: Where it runs: a list, in spite of its name in JSON.
        target_connections_per_sec: Of all threads together; at least 10 for each in effect.
        num_threads: At least 1.
        action: What each connection is opened for.
    """

    client_node: tuple[str, ...] = ()
    bootstrap_servers: str = ""
    common_client_conf: Mapping[str, str] = {}
    target_connections_per_sec: Int = 0
    num_threads: Int = 1
    action: ConnectionStressAction = ConnectionStressAction.CONNECT

    def __post_init__(self) -> None:
        super().__post_init__()
        force_setattr(self, "num_threads", max(1, self.num_threads))


class SustainedConnectionSpec(
    TaskSpec,
    frozen=True,
    kw_only=True,
    tag="org.apache.kafka.trogdor.workload.SustainedConnectionSpec",
):
    """Keeps connections open, and uses each now and then.

    Args:
        client_node: Where it runs.
        key_generator: Each use of a producer fails without it.
        value_generator: Each use of a producer fails without it.
        producer_connection_count: Producers.
        consumer_connection_count: Consumers.
        metadata_connection_count: Admin clients.
        topic_name: Produced to and read.
        num_threads: At least 1.
        refresh_rate_ms: How long a connection rests between uses; at least 1.
    """

    client_node: str = ""
    bootstrap_servers: str = ""
    producer_conf: Mapping[str, str] = {}
    consumer_conf: Mapping[str, str] = {}
    admin_client_conf: Mapping[str, str] = {}
    common_client_conf: Mapping[str, str] = {}
    key_generator: generator_specs.PayloadGenerator | None = None
    value_generator: generator_specs.PayloadGenerator | None = None
    producer_connection_count: Int = 0
    consumer_connection_count: Int = 0
    metadata_connection_count: Int = 0
    topic_name: str = ""
    num_threads: Int = 1
    refresh_rate_ms: Int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        force_setattr(self, "num_threads", max(1, self.num_threads))
        force_setattr(self, "refresh_rate_ms", max(1, self.refresh_rate_ms))


class ExternalCommandSpec(
    TaskSpec,
    frozen=True,
    kw_only=True,
    tag="org.apache.kafka.trogdor.workload.ExternalCommandSpec",
):
    """Runs a program.

    Args:
        command_node: Where it runs.
        command: The program and its arguments; the worker fails when it is empty.
        workload: Any JSON value, given to the program.
        shutdown_grace_period_ms: Between SIGTERM and SIGKILL; None for 5000.
    """

    command_node: str = ""
    command: tuple[str, ...] = ()
    workload: Any = None
    shutdown_grace_period_ms: Int | None = None
