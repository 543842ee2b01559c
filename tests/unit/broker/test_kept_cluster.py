"""A cluster on a log directory: what its clients were told outlives it, and a broken disk."""

import errno
from pathlib import Path
from random import Random

import pytest

from coordinator_sim.broker.metadata import changes
from coordinator_sim.broker.metadata.image import MetadataImage, changes_of
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from tests.faulty_files import Fault
from tests.unit.broker.kept_world import NOW, KeptWorld

OK = ErrorCode.NONE


@pytest.mark.parametrize("end", ["kill", "leave"])
def test_topics_records_and_offsets_come_back(tmp_path: Path, end: str) -> None:
    """What was answered before a process ended, in order or not, is there in the next one."""
    world = KeptWorld(tmp_path)
    world.cluster.topics.create_asked_for("__consumer_offsets", NOW)
    assert world.create("t", 3) is OK
    topic_id = world.cluster.image.topics["t"].topic_id
    assert [world.produce("t", b"%d" % number) for number in range(3)] == [
        (OK, number) for number in range(3)
    ]
    assert [world.commit("g", offset) for offset in (1, 2)] == [OK, OK]
    before = world.records("t")
    getattr(world, end)()
    assert world.cluster.image.topics["t"].topic_id == topic_id
    assert world.cluster.image.configs_of(2, "t") == {"retention.ms": "-1"}
    assert len(world.cluster.image.topics["t"].partitions) == 3
    assert world.records("t") == before
    assert world.committed("g") == 2
    assert world.leader("t") == (1, 1)
    assert world.produce("t", b"more") == (OK, 3)
    assert world.commit("g", 3) is OK
    getattr(world, end)()
    assert (world.leader("t"), world.committed("g")) == ((1, 2), 3)
    assert world.records("t").startswith(before)


def test_a_deleted_topic_stays_deleted(tmp_path: Path) -> None:
    """The topic's folders are removed, also of partitions unused since the start."""
    world = KeptWorld(tmp_path)
    world.create("t", 2)
    world.produce("t", b"gone")
    world.kill()
    request = {"topics": [{"name": "t"}], "timeoutMs": 1_000}
    assert world.call(ApiKey.DELETE_TOPICS, 6, request)["responses"][0]["errorCode"] == 0
    world.kill()
    assert "t" not in world.cluster.image.topics
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []
    world.create("t")
    assert world.produce("t", b"new") == (OK, 0)


def test_member_ids_are_not_given_out_twice(tmp_path: Path) -> None:
    """A restarted cluster of the same seed draws other ids: groups that it loads have the old."""
    world = KeptWorld(tmp_path)
    world.cluster.topics.create_asked_for("__consumer_offsets", NOW)
    request = {
        "groupId": "g",
        "sessionTimeoutMs": 10_000,
        "rebalanceTimeoutMs": 10_000,
        "memberId": "",
        "protocolType": "consumer",
        "protocols": [{"name": "range", "metadata": b""}],
    }
    seen = []
    for _ in range(3):
        seen.append(world.call(ApiKey.JOIN_GROUP, 4, request)["memberId"])
        world.kill()
    assert len(set(seen)) == 3


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO])
def test_a_refused_append_is_not_acknowledged(tmp_path: Path, number: int) -> None:
    """The producer is told KAFKA_STORAGE_ERROR, the leader resigns; the record is not there."""
    world = KeptWorld(tmp_path)
    world.create("t")
    world.produce("t", b"first")
    before = world.records("t")
    world.files.faults.append(Fault(verb="write", errno=number, path="/t-0/", short=20))
    assert world.produce("t", b"refused")[0] is ErrorCode.KAFKA_STORAGE_ERROR
    assert world.leader("t")[0] == -1
    assert "t-0: [Errno" in world.troubles[0]
    assert world.produce("t", b"refused")[0] is ErrorCode.NOT_LEADER_OR_FOLLOWER
    world.cluster.operations.stop(1, NOW)
    world.cluster.operations.resume(1, NOW)
    assert world.leader("t")[0] == 1
    assert world.records("t") == before
    assert world.produce("t", b"second") == (OK, 1)
    world.kill()
    assert world.produce("t", b"third") == (OK, 2)


def test_a_commit_on_a_full_disk_is_refused(tmp_path: Path) -> None:
    """A group's commit that cannot be written is an error, and is not there later."""
    world = KeptWorld(tmp_path)
    world.create("t")
    world.cluster.topics.create_asked_for("__consumer_offsets", NOW)
    assert world.commit("g", 1) is OK
    world.files.faults.append(Fault(verb="write", errno=errno.ENOSPC, path="__consumer_offsets"))
    assert world.commit("g", 2) is not OK
    world.cluster.expire(NOW)
    assert any("__consumer_offsets-" in text for text in world.troubles)
    world.kill()
    assert world.committed("g") == 1


def test_a_topic_that_the_journal_refuses_is_not_created(tmp_path: Path) -> None:
    """Metadata that cannot be kept does not take effect."""
    world = KeptWorld(tmp_path)
    world.files.faults.append(Fault(verb="write", errno=errno.ENOSPC, path="metadata.log"))
    assert world.create("t") is ErrorCode.KAFKA_STORAGE_ERROR
    assert "t" not in world.cluster.image.topics
    assert world.create("t") is OK
    world.kill()
    assert list(world.cluster.image.topics) == ["t"]


def test_a_disk_without_any_room_resigns_all_the_same(tmp_path: Path) -> None:
    """When the journal is refused too, a leader resigns, and that is kept once there is room."""
    world = KeptWorld(tmp_path)
    world.create("t")
    world.produce("t", b"first")
    full = Fault(verb="write", errno=errno.ENOSPC, times=None)
    world.files.faults.append(full)
    assert world.produce("t", b"refused")[0] is ErrorCode.KAFKA_STORAGE_ERROR
    assert world.leader("t") == (-1, 1)
    world.files.faults.clear()
    world.create("other")
    world.kill()
    assert world.leader("t") == (1, 2)
    assert world.produce("t", b"second") == (OK, 1)


def test_partitions_without_a_journal_are_served(tmp_path: Path) -> None:
    """A directory as a Kafka broker leaves it: topics are found by their folders."""
    world = KeptWorld(tmp_path)
    world.create("t", 2)
    world.produce("t", b"kept")
    topic_id, before = world.cluster.image.topics["t"].topic_id, world.records("t")
    world.cluster.topics.create_asked_for("__consumer_offsets", NOW)
    world.commit("g", 1)
    world.cluster.leave()
    (tmp_path / "metadata.log").unlink()
    (tmp_path / "log-inventory").unlink()
    (tmp_path / "__cluster_metadata-0").mkdir()
    world.begin()
    assert list(world.cluster.image.topics) == ["__consumer_offsets", "t"]
    assert world.cluster.image.topics["t"].topic_id == topic_id
    assert (world.records("t"), world.committed("g")) == (before, 1)
    assert (tmp_path / "__cluster_metadata-0").is_dir()


def test_folders_that_no_topic_knows_are_put_aside(tmp_path: Path) -> None:
    """A partition that the journal knows nothing of is kept for a human, and not served."""
    world = KeptWorld(tmp_path)
    world.create("t")
    (tmp_path / "lost-0").mkdir()
    world.kill()
    assert [path.name for path in tmp_path.iterdir() if "stray" in path.name] == ["lost-0.-stray"]


def test_a_grown_journal_is_rewritten(tmp_path: Path) -> None:
    """A journal of many changes becomes a short one that comes to the same."""
    world = KeptWorld(tmp_path)
    world.create("t")
    for number in range(40_000):
        world.cluster.change(changes.ConfigsChanged(2, "t", {"retention.ms": str(number)}))
    assert (tmp_path / "metadata.log").stat().st_size < 1_100_000
    image = world.cluster.image
    world.kill()
    again = world.cluster.image
    assert (again.topics["t"].topic_id, again.configs) == (
        image.topics["t"].topic_id,
        image.configs,
    )
    assert again.version == image.version + 1


def test_a_wiped_directory_serves_a_new_cluster(tmp_path: Path) -> None:
    """A reset keeps nothing, in the same process and in the next one."""
    world = KeptWorld(tmp_path)
    world.create("t", 2)
    world.produce("t", b"old")
    world.kept.wipe()
    world.serve()
    assert list(world.cluster.image.topics) == []
    assert world.create("t") is OK
    assert world.produce("t", b"new") == (OK, 0)
    world.kill()
    assert len(world.cluster.image.topics["t"].partitions) == 1
    assert b"old" not in world.records("t")


@pytest.mark.parametrize(("before", "after"), [(3, 1), (1, 3)])
def test_another_number_of_brokers_leads_what_it_can(
    tmp_path: Path, before: int, after: int
) -> None:
    """Partitions whose brokers are gone have no leader; they are led again when these are back."""
    world = KeptWorld(tmp_path, before)
    world.create("t", 3)
    led = [state.leader_id for state in world.cluster.image.topics["t"].partitions]
    world.brokers = tuple(range(1, after + 1))
    world.kill()
    partitions = world.cluster.image.topics["t"].partitions
    assert [state.leader_id for state in partitions] == [
        broker_id if broker_id <= after else -1 for broker_id in led
    ]
    world.brokers = tuple(range(1, before + 1))
    world.kill()
    assert [state.leader_id for state in world.cluster.image.topics["t"].partitions] == led


ACL = changes.AclCreated(2, "t", 3, "User:u", "*", 3, 3)


def drawn(random: Random, image: MetadataImage) -> changes.Change:
    """A change that this image can take."""
    name = random.choice("abc")
    if name not in image.topics:
        replicas = tuple((1, 2) for _ in range(random.randrange(1, 4)))
        return changes.TopicCreated(name, random.randbytes(16), replicas, {"segment.ms": "5"})
    number = random.randrange(len(image.topics[name].partitions))
    epoch = image.topics[name].partitions[number].leader_epoch + 1
    return random.choice(
        [
            changes.TopicDeleted(name),
            changes.PartitionsAdded(name, ((2, 1),)),
            changes.ConfigsChanged(2, name, {"segment.ms": random.choice(["1", None])}),
            changes.ConfigsChanged(4, "", {"log.retention.ms": random.choice(["1", None])}),
            changes.LeaderElected(name, number, random.choice([-1, 1, 2]), epoch, (2,)),
            changes.ReplicasAssigned(name, number, (3, 1)),
            changes.QuotaSet((("user", None),), "request_percentage", random.choice([1.5, None])),
            ACL,
            changes.AclDeleted(ACL),
            changes.ScramSet("u", 1, 4096, b"s", b"k", b"v"),
            changes.ScramRemoved("u", 1),
            changes.ProducerIdsReserved(random.randrange(5_000)),
            changes.FeatureSet("transaction.version", 2),
            changes.BrokerStarted(1, random.randrange(9)),
            changes.ClusterStarted((1, 2)),
        ]
    )


@pytest.mark.parametrize("seed", range(20))
def test_an_image_is_made_again_by_its_changes(seed: int) -> None:
    """The few changes that a rewritten journal holds come to what the many came to."""
    random = Random(seed)  # noqa: S311 - tests
    image = MetadataImage()
    for _ in range(200):
        image.apply(drawn(random, image))
    again = MetadataImage()
    for change in changes_of(image):
        again.apply(change)
    again.acl_version = image.acl_version
    assert again == image
