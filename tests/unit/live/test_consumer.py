"""A live consumer and its connections, against a broker of ours behind a socket."""

import asyncio
import time

import pytest

from coordinator_sim.clients.config import OffsetReset
from coordinator_sim.errors import ConfigError, CoordinatorSimError, UnsupportedVersion
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.live import driver
from coordinator_sim.live.connection import FrameSeen
from coordinator_sim.live.consumer import ConsumerMember, ConsumerOptions
from coordinator_sim.live.records import RecordRange
from coordinator_sim.live.story import MemberEvent
from coordinator_sim.messages.metadata import MetadataResponseBroker as Node
from tests.unit.live.tcp_broker import OFFERED, TcpBroker, listening


class Heard:
    """Keeps what a member tells."""

    def __init__(self) -> None:
        self.events: list[MemberEvent] = []
        self.frames: list[FrameSeen] = []

    def event(self, event: MemberEvent) -> None:
        """Keep an event."""
        self.events.append(event)

    def frame(self, frame: FrameSeen) -> None:
        """Keep a frame."""
        self.frames.append(frame)

    @property
    def kinds(self) -> list[str]:
        """The kinds of the events, in order."""
        return [event.kind for event in self.events]

    def texts(self, kind: str) -> list[str]:
        """What was said of one kind."""
        return [event.text for event in self.events if event.kind == kind]


class TenRecords:
    """A reader that finds ten records in every partition."""

    def fetch(self, positions: dict[TopicPartition, int], timeout_s: float) -> list[RecordRange]:
        """What is left of the ten."""
        time.sleep(timeout_s / 10)
        return [
            RecordRange(partition=tp, first_offset=offset, last_offset=9, count=10 - offset)
            for tp, offset in positions.items()
            if offset < 10
        ]

    def offsets_at(
        self, partitions: tuple[TopicPartition, ...], to: OffsetReset
    ) -> dict[TopicPartition, int]:
        """Every partition begins at 0 and ends at 10."""
        return dict.fromkeys(partitions, 0 if to is OffsetReset.EARLIEST else 10)

    def close(self) -> None:
        """Nothing to close."""


def member_of(
    broker: TcpBroker,
    heard: Heard,
    *,
    reader: TenRecords | None = None,
    pattern: str = "",
    **settings: str,
) -> ConsumerMember:
    """A member that begins with this broker; of `orders`, or of a pattern."""
    options = ConsumerOptions(
        bootstrap=(Node(node_id=-1, host="127.0.0.1", port=broker.port),),
        group_id="g",
        topics=() if pattern else ("orders",),
        pattern=pattern,
        client_id="c",
        settings={"heartbeat.interval.ms": "50", "auto.offset.reset": "earliest", **settings},
    )
    return ConsumerMember(options, reader, heard)


async def live(broker: TcpBroker, heard: Heard, *, reader: TenRecords | None = None) -> None:
    """Run a member for half a second."""
    async with listening(broker):
        member = member_of(broker, heard, reader=reader)
        asyncio.get_running_loop().call_later(0.5, member.stop)
        await asyncio.wait_for(member.run(), 10)
        assert member.fatal_error is None


def test_member_joins_consumes_commits_and_leaves() -> None:
    """A whole life: found, joined, assigned, consumed, committed, revoked, left."""
    broker, heard = TcpBroker(), Heard()

    asyncio.run(live(broker, heard, reader=TenRecords()))

    assert heard.texts("JOINED") == ["joined generation 1 as leader of 1 (range)"]
    assert heard.texts("ASSIGNED") == ["assigned orders-0 orders-1"]
    assert sorted(heard.texts("CONSUMED")) == ["consumed 20 records orders-0:0..9 orders-1:0..9"]
    assert heard.texts("COMMITTED") == ["committed orders-0=10 orders-1=10"]
    assert heard.kinds[-2:] == ["REVOKED", "LEFT"]
    assert {header.client_id for header in broker.headers} == {"c"}


def test_a_member_without_a_reader_keeps_its_membership() -> None:
    """A member without a reader keeps its partitions and commits, though it reads no records."""
    broker, heard = TcpBroker(), Heard()

    asyncio.run(live(broker, heard))

    assert heard.texts("COMMITTED") == ["committed orders-0=0 orders-1=0"]
    assert "CONSUMED" not in heard.kinds


def test_a_pattern_is_matched_with_the_topics_of_the_cluster() -> None:
    """Metadata is asked for every topic, and what matches is joined with."""
    broker, heard = TcpBroker(), Heard()

    async def whole_life() -> None:
        async with listening(broker):
            member = member_of(broker, heard, pattern="ord.*")
            asyncio.get_running_loop().call_later(0.7, member.stop)
            await asyncio.wait_for(member.run(), 10)

    asyncio.run(whole_life())

    assert heard.texts("ASSIGNED")[-1] == "assigned orders-0 orders-1"


def test_versions_are_the_newest_that_both_sides_speak() -> None:
    """The broker's newest where it is older; a port's newest where commits go by topic ids."""
    offered = {**OFFERED, ApiKey.JOIN_GROUP: (0, 5), ApiKey.OFFSET_FETCH: (1, 10)}
    broker, heard = TcpBroker(offered=offered), Heard()

    asyncio.run(live(broker, heard))

    used = {header.api_key: header.api_version for header in broker.headers}
    assert used[ApiKey.JOIN_GROUP] == 5
    assert used[ApiKey.OFFSET_FETCH] == 9
    assert used[ApiKey.METADATA] == 12
    assert used[18] == 3


@pytest.mark.parametrize("newest", [0, 2, 3, 4])
def test_a_refused_api_versions_is_asked_again_in_a_version_that_the_refusal_names(
    newest: int,
) -> None:
    """The refusal has the layout of version 0 and names the broker's own range."""
    broker, heard = TcpBroker(newest_api_versions=newest), Heard()

    asyncio.run(live(broker, heard))

    asked = [header.api_version for header in broker.headers if header.api_key == 18]
    assert asked[:2] == ([4, newest] if newest < 4 else [4, 4])
    assert "JOINED" in heard.kinds


def test_the_oldest_versions_are_enough() -> None:
    """A broker from before flexible versions serves a member too."""
    oldest = {api: (low, max(low, 1)) for api, (low, _) in OFFERED.items()}
    broker, heard = TcpBroker(offered=oldest, newest_api_versions=0), Heard()

    asyncio.run(live(broker, heard))

    assert heard.kinds[-2:] == ["REVOKED", "LEFT"]


def test_no_common_version_is_one_clear_error() -> None:
    """The message names the API and both ranges."""
    broker, heard = TcpBroker(offered={**OFFERED, ApiKey.JOIN_GROUP: (40, 41)}), Heard()

    with pytest.raises(UnsupportedVersion, match=r"JOIN_GROUP.*0 to 9.*speaks 40 to 41"):
        asyncio.run(live(broker, heard))


def test_a_missing_api_is_one_clear_error() -> None:
    """A broker that is no group coordinator is told from one that is too new."""
    offered = {api: span for api, span in OFFERED.items() if api is not ApiKey.SYNC_GROUP}

    with pytest.raises(UnsupportedVersion, match=r"SYNC_GROUP.*does not have it"):
        asyncio.run(live(TcpBroker(offered=offered), Heard()))


def test_an_unreachable_bootstrap_ends_in_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """After the bound the address and the reason are named."""
    monkeypatch.setattr(driver, "FIRST_CONTACT_S", 0.2)
    broker = TcpBroker()
    broker.port = 1

    async def alone() -> None:
        await member_of(broker, Heard()).run()

    with pytest.raises(ConfigError, match=r"127\.0\.0\.1:1 .*Connect call failed|refused"):
        asyncio.run(alone())


def test_garbage_ends_the_connection_and_is_told() -> None:
    """A frame that does not parse is a lost connection, told once."""
    broker, heard = TcpBroker(), Heard()
    broker.garbage = b"\x00\x00\x00\x00\x00\x00\x7f\xff\xff\xff"

    asyncio.run(live(broker, heard))

    assert set(heard.kinds) == {"DISCONNECTED"}
    assert len(heard.kinds) == 1


def test_an_answer_that_comes_twice_ends_the_member() -> None:
    """Java's poll raises, and an application that does not expect it closes its consumer."""
    broker, heard = TcpBroker(), Heard()
    broker.doubled = ApiKey.HEARTBEAT

    async def until_it_fails() -> str | None:
        async with listening(broker):
            member = member_of(broker, heard)
            await asyncio.wait_for(member.run(), 10)
            return member.fatal_error

    assert asyncio.run(until_it_fails()) == "IllegalStateException"
    assert heard.texts("FAILED") == ["poll raised IllegalStateException"]
    assert heard.kinds[-2:] == ["REVOKED", "LEFT"]


def test_a_lost_coordinator_is_found_again() -> None:
    """The broker closes every connection once; the member goes on in its generation."""
    broker, heard = TcpBroker(), Heard()

    async def interrupted() -> None:
        async with listening(broker):
            member = member_of(broker, heard)
            loop = asyncio.get_running_loop()
            loop.call_later(0.3, broker.cut)
            loop.call_later(1.2, member.stop)
            await asyncio.wait_for(member.run(), 10)

    asyncio.run(interrupted())

    again = heard.kinds.index("DISCONNECTED")
    assert "COORDINATOR" in heard.kinds[again:]
    assert heard.kinds.count("JOINED") == 1
    assert heard.kinds[-1] == "LEFT"


def test_every_frame_is_seen() -> None:
    """Every request of a connection, from ApiVersions on, and its answer in the same order."""
    heard = Heard()

    asyncio.run(live(TcpBroker(), heard))

    for number in sorted({frame.connection for frame in heard.frames}):
        mine = [frame for frame in heard.frames if frame.connection == number]
        asked = [frame.correlation_id for frame in mine if frame.is_request]
        answered = [frame.correlation_id for frame in mine if not frame.is_request]
        assert mine[0].api_key == 18
        assert answered == asked[: len(answered)]
        assert len(answered) >= len(asked) - 1


def test_a_bad_setting_is_refused_at_once() -> None:
    """Before anything is connected."""

    async def wrong() -> None:
        member_of(TcpBroker(), Heard(), **{"sesion.timeout.ms": "1"})

    with pytest.raises(CoordinatorSimError, match=r"sesion\.timeout\.ms"):
        asyncio.run(wrong())
