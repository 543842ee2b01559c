"""What a consumer's settings cause, and what is refused."""

import pytest

from coordinator_sim.clients.settings_advice import Weight, advise

GOOD = {
    "group.id": "g",
    "group.instance.id": "a",
    "session.timeout.ms": "60000",
    "partition.assignment.strategy": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
}


def test_settings_of_a_quiet_group_need_no_advice() -> None:
    """Static, cooperative, patient; TLS and SASL belong to every client."""
    assert advise({**GOOD, "ssl.protocol": "TLSv1.3", "sasl.mechanism": "PLAIN"}) == []


@pytest.mark.parametrize(
    "changed",
    [
        {"auto.offset.reset": "by_duration:PT1H30M"},
        {"auto.offset.reset": "by_duration:P1DT0.5S"},
        {"auto.offset.reset": " earliest "},
        {"enable.auto.commit": "TRUE", "security.protocol": "sasl_ssl"},
        {"isolation.level": "read_committed", "group.protocol": "CLASSIC"},
        {"metadata.recovery.strategy": "REBOOTSTRAP", "share.acquire.mode": "record_limit"},
    ],
)
def test_words_that_a_consumer_takes_need_no_advice(changed: dict[str, str]) -> None:
    """Case counts for some settings alone; blanks around a value never do."""
    assert advise({**GOOD, **changed}) == []


@pytest.mark.parametrize(
    ("changed", "setting", "weight", "words"),
    [
        ({"session.timeout.ms": "5999"}, "session.timeout.ms", Weight.ERROR, "INVALID_SESSION"),
        ({"session.timeout.ms": "9000"}, "session.timeout.ms", Weight.WARNING, "a pause of 9 s"),
        ({"session.timeout.ms": "59999"}, "session.timeout.ms", Weight.WARNING, "a restart of"),
        ({"session.timeout.ms": "300001"}, "session.timeout.ms", Weight.WARNING, "gone for good"),
        ({"heartbeat.interval.ms": "60000"}, "heartbeat.interval.ms", Weight.ERROR, "not start"),
        ({"heartbeat.interval.ms": "20001"}, "heartbeat.interval.ms", Weight.WARNING, "losing 2"),
        ({"group.instance.id": ""}, "group.instance.id", Weight.WARNING, "every restart"),
        ({"max.poll.interval.ms": "59999"}, "max.poll.interval.ms", Weight.WARNING, "below"),
        ({"max.poll.interval.ms": "1800001"}, "max.poll.interval.ms", Weight.WARNING, "waits up"),
        ({"max.poll.interval.ms": "0"}, "max.poll.interval.ms", Weight.ERROR, "does not start"),
        ({"max.poll.records": "1e3"}, "max.poll.records", Weight.ERROR, "does not start"),
        ({"auto.commit.interval.ms": "60001"}, "auto.commit.interval.ms", Weight.WARNING, "again"),
        ({"isolation.level": "READ_COMMITTED"}, "isolation.level", Weight.ERROR, "not start"),
        ({"auto.offset.reset": "smallest"}, "auto.offset.reset", Weight.ERROR, "not start"),
        ({"auto.offset.reset": "by_duration:1h"}, "auto.offset.reset", Weight.ERROR, "not start"),
        ({"enable.auto.commit": "yes"}, "enable.auto.commit", Weight.ERROR, "not start"),
        ({"group.protocol": "streams"}, "group.protocol", Weight.ERROR, "not start"),
        ({"group.instance.id": "a b"}, "group.instance.id", Weight.ERROR, "not start"),
        (
            {"group.remote.assignor": "uniform"},
            "group.remote.assignor",
            Weight.ERROR,
            "for group.protocol=consumer alone",
        ),
        (
            {"group.protocol": "consumer", "group.remote.assignor": "sticky"},
            "group.remote.assignor",
            Weight.ERROR,
            "UNSUPPORTED_ASSIGNOR",
        ),
        ({"max.poll.record": "9"}, "max.poll.record", Weight.WARNING, "no setting of Kafka's"),
        (
            {"partition.assignment.strategy": "range"},
            "partition.assignment.strategy",
            Weight.WARNING,
            "stops all members",
        ),
        (
            {"group.protocol": "consumer"},
            "partition.assignment.strategy",
            Weight.ERROR,
            "brokers decide it",
        ),
    ],
)
def test_each_rule_names_setting_and_consequence(
    changed: dict[str, str], setting: str, weight: Weight, words: str
) -> None:
    """One setting is changed for the worse."""
    found = {each.setting: each for each in advise({**GOOD, **changed})}
    assert found[setting].weight is weight
    assert words in found[setting].what
    assert found[setting].value == {**GOOD, **changed}[setting]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("session.timeout.ms", "60000"),
        ("session.timeout.ms", "300000"),
        ("heartbeat.interval.ms", "20000"),
        ("max.poll.interval.ms", "60000"),
        ("max.poll.interval.ms", "1800000"),
        ("auto.commit.interval.ms", "60000"),
    ],
)
def test_bounds_themselves_are_fine(name: str, value: str) -> None:
    """Advice begins behind them."""
    assert advise({**GOOD, name: value}) == []


def test_defaults_are_advised_of_too() -> None:
    """A file that says nothing has Kafka's defaults, shown in brackets."""
    found = {each.setting: each.value for each in advise({})}
    assert found == {
        "group.instance.id": "(not set)",
        "partition.assignment.strategy": "(RangeAssignor,CooperativeStickyAssignor)",
    }


def test_a_slip_is_told_the_name_that_was_meant() -> None:
    """Kafka only logs that it does not know it."""
    (found,) = advise({**GOOD, "sesion.timeout.ms": "9"})
    assert found.change == "did you mean session.timeout.ms?"
