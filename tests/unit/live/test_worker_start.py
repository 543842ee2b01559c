"""What a live Connect worker says before it has met a broker."""

import asyncio

import pytest

from coordinator_sim.connect.settings.worker_config import told_of_unknown
from coordinator_sim.errors import ConfigError
from coordinator_sim.live import driver
from coordinator_sim.live.connection import FrameSeen
from coordinator_sim.live.story import MemberEvent
from coordinator_sim.live.worker import ConnectMember, WorkerOptions
from coordinator_sim.messages.metadata import MetadataResponseBroker as Node

JSON = "org.apache.kafka.connect.json.JsonConverter"
PROPERTIES = {
    "bootstrap.servers": "127.0.0.1:1",
    "group.id": "g",
    "key.converter": JSON,
    "value.converter": JSON,
    "config.storage.topic": "c",
    "offset.storage.topic": "o",
    "status.storage.topic": "s",
    "listeners": "http://127.0.0.1:0",
}


class Heard:
    """Keeps what a worker tells."""

    def __init__(self) -> None:
        self.events: list[MemberEvent] = []

    def event(self, event: MemberEvent) -> None:
        """Keep an event."""
        self.events.append(event)

    def frame(self, frame: FrameSeen) -> None:
        """Frames are not looked at."""


def heard(properties: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> list[MemberEvent]:
    """What a worker without brokers tells before it gives up."""
    monkeypatch.setattr(driver, "FIRST_CONTACT_S", 0.3)
    audience = Heard()

    async def live() -> None:
        nodes = (Node(node_id=-1, host="127.0.0.1", port=1),)
        options = WorkerOptions(bootstrap=nodes, properties=properties, plugins=())
        await ConnectMember(options, audience).run()

    with pytest.raises(ConfigError, match="no broker answered"):
        asyncio.run(asyncio.wait_for(live(), 30))
    return audience.events


def test_settings_that_nobody_knows_are_warned_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line a start with all of them and the nearest known names; the worker starts."""
    strange = {"sesion.timeout.ms": "1", "colour": "red", "consumer.anything": "x"}
    events = heard({**PROPERTIES, **strange}, monkeypatch)

    ignored = [each for each in events if each.kind == "IGNORED"]
    (line,) = [each.text for each in ignored]
    assert line.endswith(": sesion.timeout.ms (did you mean session.timeout.ms?), colour")
    assert ignored[0].details == {"names": ["sesion.timeout.ms", "colour"]}


def test_nothing_is_said_of_settings_that_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    """No line without a name in it."""
    assert told_of_unknown(()) is None
    assert "IGNORED" not in [each.kind for each in heard(PROPERTIES, monkeypatch)]
