"""What a Connect worker's settings cause, and what is refused."""

import json
from pathlib import Path

import pytest

from coordinator_sim.clients.client_kind import ClientKind, kind_of_settings
from coordinator_sim.clients.settings_advice import Weight
from coordinator_sim.connect.settings.worker_advice import advise_worker
from coordinator_sim.connect.settings.worker_settings import WORKER_CONFIG_DEF

ADVICE = Path(__file__).with_name("worker_advice.jsonl")
"""Changed settings, the weight of what is found, and words of the advice."""

GOOD = {
    "bootstrap.servers": "broker-1:9092",
    "group.id": "connect",
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "config.storage.topic": "connect-configs",
    "offset.storage.topic": "connect-offsets",
    "status.storage.topic": "connect-status",
    "scheduled.rebalance.max.delay.ms": "90000",
}


def test_settings_of_a_quiet_worker_need_no_advice() -> None:
    """What belongs to clients of the worker, to its topics and to TLS is passed on."""
    more = {"ssl.protocol": "TLSv1.3", "consumer.max.poll.records": "50", "producer.linger.ms": "5"}
    assert advise_worker({**GOOD, **more, "offset.storage.partitions": "25"}) == []


@pytest.mark.parametrize("line", ADVICE.read_text("utf-8").splitlines())
def test_each_rule_names_setting_and_consequence(line: str) -> None:
    """One setting is changed for the worse, and is all that is found."""
    case = json.loads(line)
    (found,) = advise_worker({**GOOD, **case["changed"]})
    ((setting, value),) = case["changed"].items()
    assert (found.setting, found.value, found.weight.name) == (setting, value, case["weight"])
    assert case["words"] in found.what


def test_eager_workers_are_told_what_does_nothing_and_what_waits() -> None:
    """The delay is of the other protocols; the backoff is of this one."""
    found = {each.setting: each for each in advise_worker({**GOOD, "connect.protocol": "eager"})}
    assert found.keys() == {
        "connect.protocol",
        "scheduled.rebalance.max.delay.ms",
        "worker.unsync.backoff.ms",
    }
    assert "stops all connectors" in found["connect.protocol"].what
    assert found["worker.unsync.backoff.ms"].value == "(300000)"


@pytest.mark.parametrize("missing", [name for name in GOOD if not name.startswith(("sch", "boot"))])
def test_what_every_worker_needs_is_missed(missing: str) -> None:
    """One error for each setting without a default."""
    settings = {name: value for name, value in GOOD.items() if name != missing}
    found = [each for each in advise_worker(settings) if each.weight is Weight.ERROR]
    assert [(each.setting, each.value) for each in found] == [(missing, "(not set)")]
    assert "default" in found[0].what


def test_defaults_of_kafka_need_one_change() -> None:
    """The delay of five minutes; a worker is told by its own names."""
    settings = {name: GOOD[name] for name in GOOD if name in WORKER_CONFIG_DEF.keys}
    del settings["scheduled.rebalance.max.delay.ms"]
    (found,) = advise_worker(settings)
    assert (found.setting, found.value) == ("scheduled.rebalance.max.delay.ms", "(300000)")
    assert kind_of_settings(settings) is ClientKind.CONNECT
    assert kind_of_settings({"group.id": "g", "session.timeout.ms": "1"}) is ClientKind.CONSUMER
