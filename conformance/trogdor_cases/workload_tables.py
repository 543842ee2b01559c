"""Cases: names, payloads, transactions and rates of workloads, as tables over functions."""

from typing import Final

from coordinator_sim.trogdor import jackson
from coordinator_sim.trogdor.generator_specs import (
    SequentialPayloadGenerator,
    TimeIntervalTransactionsGenerator,
    UniformTransactionsGenerator,
)
from coordinator_sim.trogdor.payloads import payloads_of
from coordinator_sim.trogdor.rates import per_period
from coordinator_sim.trogdor.string_expander import InvalidName, expand
from coordinator_sim.trogdor.topic_specs import PartitionsSpec
from coordinator_sim.trogdor.transactions import TransactionAction, transactions_of
from coordinator_sim.trogdor.workload_specs import ConsumeBenchSpec
from coordinator_sim_conformance.trogdor_cases.case import table_case
from coordinator_sim_conformance.trogdor_cases.story import expect

_BEGIN: Final = TransactionAction.BEGIN_TRANSACTION
_COMMIT: Final = TransactionAction.COMMIT_TRANSACTION
_SEND: Final = TransactionAction.NO_OP
_REFUSED: Final = "refused"


@table_case("J01", "StringExpanderTest")
def last_range_of_a_name_stands_for_names() -> None:
    """The last range of numbers in a name stands for names; one that runs backwards is refused."""
    table = {
        "foo": ["foo"],
        "": [""],
        "foo[1-3]": ["foo1", "foo2", "foo3"],
        "foo[1-3]bar": ["foo1bar", "foo2bar", "foo3bar"],
        "[[ wow[50-52] ]]": ["[[ wow50 ]]", "[[ wow51 ]]", "[[ wow52 ]]"],
        "start[1-3]middle[1-3]epilogue": [
            "start[1-3]middle1epilogue",
            "start[1-3]middle2epilogue",
            "start[1-3]middle3epilogue",
        ],
    }
    for name, names in table.items():
        expect(name, sorted(expand(name)), names)
    try:
        expand("foo[3-1]")
    except InvalidName as refusal:
        expect("foo[3-1]", str(refusal), "Invalid range: start 3 is higher than end 1")
    else:
        expect("foo[3-1]", "expanded", _REFUSED)


@table_case("J02", "ConsumeBenchSpecTest")
def consumed_names_are_topics_or_partitions() -> None:
    """All ranges of a consumed name count; behind its one colon stands a partition."""
    five = [1, 2, 3, 4, 5]
    table: dict[tuple[str, ...], dict[str, list[int]]] = {
        ("topic[1-3]", "secondTopic"): {
            "topic1": [],
            "topic2": [],
            "topic3": [],
            "secondTopic": [],
        },
        ("topic[1-3]:[1-5]", "secondTopic", "thirdTopic:1"): {
            "topic1": five,
            "topic2": five,
            "topic3": five,
            "secondTopic": [],
            "thirdTopic": [1],
        },
    }
    for names, topics in table.items():
        found = ConsumeBenchSpec(active_topics=names).materialize_topics()
        expect(", ".join(names), {topic: sorted(found[topic]) for topic in found}, topics)
    colons = ("In:valid", "invalid:", ":invalid", "in:valid:1", "invalid:2:2", "invalid::1")
    for name in (*colons, "invalid[1-3]:"):
        expect(name, _consumed(name), _REFUSED)


def _consumed(name: str) -> object:
    """What a consumed name stands for."""
    try:
        return ConsumeBenchSpec(active_topics=(name,)).materialize_topics()
    except InvalidName:
        return _REFUSED


@table_case("J11", "WorkerUtils.perSecToPerPeriod")
def rates_are_whole_numbers_of_a_period() -> None:
    """A rate per second becomes the whole number for a period, and at least 1."""
    period_ms = 100
    table = {1_000: 100, 10: 1, 1: 1, 0: 1, -5: 1, 15: 1, 25: 2}
    for per_second, wanted in table.items():
        expect(f"{per_second} per second", per_period(per_second, period_ms), wanted)


@table_case(
    "J12", "UniformTransactionsGenerator.nextAction", "TimeIntervalTransactionsGeneratorTest"
)
def transactions_end_by_number_or_time() -> None:
    """A transaction is committed after so many records, or after so much time; then one begins."""
    uniform = transactions_of(UniformTransactionsGenerator(messages_per_transaction=2))
    actions = [uniform.next_action(0) for _ in range(5)]
    expect("two records each", actions, [_BEGIN, _SEND, _SEND, _COMMIT, _BEGIN])

    interval = transactions_of(TimeIntervalTransactionsGenerator(transaction_interval_ms=100))
    instants = (0, 0, 50, 99, 100, 100)
    actions = [interval.next_action(at_ms) for at_ms in instants]
    expect("100 ms each", actions, [_BEGIN, _SEND, _SEND, _SEND, _COMMIT, _BEGIN])


@table_case("J13", "PayloadGeneratorTest.testSequentialPayloadGenerator")
def sequential_payloads_are_numbers() -> None:
    """A sequential payload is its offset plus its position, from the lowest byte, cut to size."""
    table = {
        (4, 1, 0): 1,
        (4, 1, 1): 2,
        (8, 0, 123_123_123_123): 123_123_123_123,
        (2, 0, 131_073): 1,
    }
    for (size, offset, position), value in table.items():
        generator = payloads_of(SequentialPayloadGenerator(size=size, start_offset=offset))
        payload = generator.payload(position, 0)
        expect(f"payload {position}", payload, value.to_bytes(size, "little"))


@table_case("J20", "PartitionsSpec.newTopic")
def new_topics_have_one_partition_and_three_replicas() -> None:
    """Numbers of partitions and replicas below 1 stand for 1 and 3."""
    table = {
        "{}": (1, 3),
        '{"numPartitions": 0, "replicationFactor": -1}': (1, 3),
        '{"numPartitions": 5, "replicationFactor": 1}': (5, 1),
    }
    for text, wanted in table.items():
        spec = jackson.read(text, PartitionsSpec)
        found = (spec.effective_num_partitions, spec.effective_replication_factor)
        expect(text, found, wanted)
