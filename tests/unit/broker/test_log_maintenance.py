"""Settings reach the logs, and time makes them smaller."""

import pytest

from coordinator_sim.broker.configs.configs import Configs, LogSettings
from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.metadata.changes import ConfigsChanged, TopicCreated
from coordinator_sim.broker.metadata.image import BROKER_RESOURCE, TOPIC_RESOURCE, MetadataImage
from coordinator_sim.broker.purgatory import Place
from coordinator_sim.broker.replicas.log_manager import LogMaintenance, LogManager
from coordinator_sim.broker.scheduler import Scheduler
from coordinator_sim.kafka.profiles import PROFILES
from coordinator_sim.log.format.record_batches import Record, batch_of, encode_record_batch
from coordinator_sim.log.memory_store import MemoryStore
from coordinator_sim.log.partition_log import PartitionLog

NOW_MS = 1_700_000_000_000
FIVE_MINUTES_MS = 300_000


class World:
    """A topic t with one partition, and its upkeep."""

    def __init__(self, profile: str = "4.4", **given: str) -> None:
        self.image = MetadataImage()
        settings = {name.replace("_", "."): text for name, text in given.items()}
        self.configs = Configs(PROFILES[profile], settings, self.image)
        self.settings = LogSettings(self.configs, self.image, PROFILES[profile])
        self.logs = LogManager(self.image, lambda *_: MemoryStore(), self.settings.of)
        self.failed: list[Place] = []
        self.troubles: list[str] = []
        self.upkeep = LogMaintenance(
            self.logs,
            self.configs,
            lambda place, _: self.failed.append(place),
            self.troubles.append,
            Scheduler(),
        )
        self.image.apply(TopicCreated("t", bytes(16), ((1,),)))

    def log(self) -> PartitionLog:
        """The log of the partition."""
        log = self.logs.log_of("t", 0)
        assert log is not None
        return log

    def set_topic(self, **values: str | None) -> None:
        """Change settings of the topic."""
        named = {name.replace("_", "."): text for name, text in values.items()}
        self.image.apply(ConfigsChanged(TOPIC_RESOURCE, "t", named))

    def send(self, key: bytes = b"k", at_ms: int = NOW_MS, **producer: int) -> None:
        """Append one record, of an idempotent producer if its fields are named."""
        record = Record(offset=0, timestamp_ms=at_ms, key=key, value=b"v" * 50)
        data = encode_record_batch(batch_of((record,), **producer))
        self.log().append(data, now_ms=at_ms, leader_epoch=0)

    def run_until(self, group_ms: int) -> int:
        """Expire at every deadline up to that instant; how many there were."""
        count = 0
        while (due := self.upkeep.next_group_deadline_ms()) is not None and due <= group_ms:
            self.upkeep.expire(Instants(due, due))
            count += 1
        self.upkeep.expire(Instants(group_ms, group_ms))
        return count


def test_a_topics_settings_come_before_the_brokers() -> None:
    """Topic, brokers, default: and a change reaches the log with its next use."""
    world = World(log_retention_hours="2")
    assert world.log().config.retention_ms == 2 * 3_600_000
    world.set_topic(retention_ms="5", cleanup_policy="compact,delete")
    config = world.log().config
    assert (config.retention_ms, config.is_compacted, config.deletes) == (5, True, True)
    change = ConfigsChanged(BROKER_RESOURCE, "", {"log.segment.bytes": "2000000"})
    world.image.apply(change)
    assert world.log().config.segment_bytes == 2_000_000


def test_defaults_are_the_profiles() -> None:
    """Timestamps from far ahead are refused from 4.0 on; 0.10.2 stores the older format."""
    assert World("4.4").settings.of("t").message_timestamp_after_max_ms == 3_600_000
    assert World("3.9").settings.of("t").message_timestamp_after_max_ms == 2**63 - 1
    assert World("0.10.2").settings.of("t").message_format_magic == 1
    assert World("3.9").settings.of("t").message_format_magic == 2


def test_an_old_broker_stores_the_format_that_a_topic_wants() -> None:
    """`message.format.version` of a topic counts where logs have no producers yet."""
    world = World("0.10.2")
    world.set_topic(message_format_version="0.9.0")
    assert world.log().config.message_format_magic == 0


def test_old_timestamps_have_one_bound() -> None:
    """`message.timestamp.difference.max.ms` stands for both bounds."""
    world = World("3.9")
    world.set_topic(message_timestamp_difference_max_ms="1000")
    config = world.log().config
    bounds = (config.message_timestamp_before_max_ms, config.message_timestamp_after_max_ms)
    assert bounds == (1000, 1000)


def test_old_records_go_with_time() -> None:
    """A turn every five minutes; over empty logs the clock comes to rest."""
    world = World()
    world.set_topic(retention_ms="1000000")
    world.upkeep.expire(Instants(NOW_MS, NOW_MS))
    assert world.upkeep.next_group_deadline_ms() is None
    world.send()
    assert world.upkeep.next_group_deadline_ms() == NOW_MS + FIVE_MINUTES_MS
    world.run_until(NOW_MS + 900_000)
    assert world.log().log_start_offset == 0
    world.run_until(NOW_MS + 1_200_000)
    assert world.log().log_start_offset == 1
    assert world.run_until(NOW_MS + 100_000_000) == 0
    assert world.upkeep.next_group_deadline_ms() is None


@pytest.mark.parametrize(
    ("profile", "settings", "forgotten_ms"),
    [
        ("4.4", {"producer.id.expiration.check.interval.ms": "700"}, 10_500),
        ("4.4", {}, 600_000),
        ("3.9", {"log.retention.check.interval.ms": "700"}, 600_000),
    ],
)
def test_silent_producer_expires_by_the_interval_of_its_own(
    profile: str, settings: dict[str, str], forgotten_ms: int
) -> None:
    """The interval of retention is another one; here producers are silent for ten seconds."""
    world = World(profile, **settings, **{"producer.id.expiration.ms": "10000"})
    world.upkeep.expire(Instants(NOW_MS, NOW_MS))
    world.send(producer_id=1, producer_epoch=0, base_sequence=0)
    world.run_until(NOW_MS + forgotten_ms - 1)
    assert world.log().producers() != ()
    world.run_until(NOW_MS + forgotten_ms)
    assert world.log().producers() == ()


def test_producers_are_remembered_as_long_as_transactional_ids_in_2_8() -> None:
    """There is no setting of their own yet."""
    world = World("2.8", transactional_id_expiration_ms="5000")
    assert world.log().config.producer_id_expiration_ms == 5_000


def test_the_first_turn_is_an_interval_after_the_beginning() -> None:
    """Whatever the clock showed before: records of an old time are there for a while."""
    world = World()
    world.send(at_ms=NOW_MS - 365 * 86_400_000)
    world.upkeep.next_group_deadline_ms()
    world.upkeep.expire(Instants(NOW_MS, NOW_MS))
    assert world.upkeep.next_group_deadline_ms() == NOW_MS + FIVE_MINUTES_MS
    assert world.log().log_start_offset == 0


def superseded() -> World:
    """A compacted topic of several segments, most of whose records are superseded."""
    world = World()
    world.set_topic(
        cleanup_policy="compact", internal_segment_bytes="1000", min_cleanable_dirty_ratio="0.1"
    )
    world.upkeep.expire(Instants(NOW_MS, NOW_MS))
    for _ in range(60):
        world.send()
    return world


def test_the_cleaner_works_in_steps() -> None:
    """A compacted topic loses what was superseded, a step at each deadline of the present."""
    world = superseded()
    size = world.log().size_bytes
    assert world.run_until(NOW_MS + FIVE_MINUTES_MS) > 1
    assert world.log().size_bytes < size / 2


def test_the_cleaner_can_be_turned_off() -> None:
    """`log.cleaner.enable=false` leaves compacted topics alone."""
    world = World("3.9", log_cleaner_enable="false")
    world.set_topic(cleanup_policy="compact", segment_bytes="1000")
    world.upkeep.expire(Instants(NOW_MS, NOW_MS))
    for _ in range(60):
        world.send()
    size = world.log().size_bytes
    world.run_until(NOW_MS + FIVE_MINUTES_MS)
    assert world.log().size_bytes == size


def test_a_log_that_cannot_be_cleaned_is_told_once() -> None:
    """A damaged batch stays as it is, and so does the log; nobody resigns."""
    world = superseded()
    batches = world.log()._store._segments[0].batches  # type: ignore[attr-defined]
    batches[0] = batches[0][:-60] + b"\x7f" * 60
    size = world.log().size_bytes
    world.run_until(NOW_MS + 3 * FIVE_MINUTES_MS)
    (trouble,) = world.troubles
    told = "t-0 is not compacted any more, so that superseded records stay: record batch: "
    assert trouble.startswith(told)
    assert world.log().size_bytes == size
    assert not world.failed


def test_only_one_slice_is_done_at_a_time() -> None:
    """A turn finds out which logs are to be cleaned; none of them is touched in it."""
    world = superseded()
    size = world.log().size_bytes
    world.upkeep.next_group_deadline_ms()
    turn_ms = NOW_MS + FIVE_MINUTES_MS
    world.upkeep.expire(Instants(turn_ms, turn_ms))
    assert world.upkeep.next_group_deadline_ms() == turn_ms
    assert world.log().size_bytes == size
    log = world.log()
    world.logs.topic_deleted("t", bytes(16), 1, Instants(turn_ms, turn_ms))
    world.upkeep.expire(Instants(turn_ms, turn_ms))
    assert not log.clean_some(turn_ms)
    assert not world.failed


def test_many_logs_are_seen_to_in_slices() -> None:
    """Others are answered in between; a log that is deleted meanwhile is left alone."""
    world = World()
    world.image.apply(TopicCreated("wide", bytes(15) + b"w", ((1,),) * 1_200))
    world.image.apply(ConfigsChanged(TOPIC_RESOURCE, "wide", {"retention.ms": "1000000"}))
    logs = [world.logs.log_of("wide", index) for index in range(1_200)]
    data = encode_record_batch(
        batch_of((Record(offset=0, timestamp_ms=NOW_MS, key=b"k", value=b"v"),))
    )
    for log in logs:
        assert log is not None
        log.append(data, now_ms=NOW_MS, leader_epoch=0)
    world.upkeep.expire(Instants(NOW_MS, NOW_MS))
    at_ms = NOW_MS + 2_000_000
    starts = []
    for _ in range(2):
        assert world.upkeep.next_group_deadline_ms() is not None
        world.upkeep.expire(Instants(at_ms, at_ms))
        starts.append(sum(log.log_start_offset for log in logs if log is not None))
    world.logs.topic_deleted("wide", bytes(16), 1_200, Instants(at_ms, at_ms))
    world.upkeep.expire(Instants(at_ms, at_ms))

    assert starts == [500, 1_000]
    assert (world.failed, world.upkeep.next_group_deadline_ms()) == ([], None)
