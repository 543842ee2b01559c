"""What a consumer's settings cause, and what is refused."""

import json
from pathlib import Path

import pytest

from coordinator_sim.clients.settings_advice import advise

GOOD = {
    "group.id": "g",
    "group.instance.id": "a",
    "session.timeout.ms": "60000",
    "partition.assignment.strategy": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
}
ADVICE = Path(__file__).with_name("consumer_advice.jsonl")
"""Changed settings, the one that is named, its weight, and words of the advice."""


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


@pytest.mark.parametrize("line", ADVICE.read_text("utf-8").splitlines())
def test_each_rule_names_setting_and_consequence(line: str) -> None:
    """One setting is changed for the worse."""
    case = json.loads(line)
    settings, name = {**GOOD, **case["changed"]}, case["setting"]
    found = {each.setting: each for each in advise(settings)}
    assert found[name].weight.name == case["weight"]
    assert case["words"] in found[name].what
    assert found[name].value == settings[name]


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
