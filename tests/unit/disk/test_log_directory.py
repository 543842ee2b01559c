"""A log directory: whose it is, what it holds, and what became of it since."""

import errno
import fcntl
import json
import os
from pathlib import Path

import pytest

from coordinator_sim.disk.log_directory import DirectorySettings, LogDirectory
from coordinator_sim.errors import ConfigError
from coordinator_sim.log.contract import SegmentSettings
from tests.faulty_files import Fault, FaultyFiles
from tests.unit.disk.segment_worlds import contents, encoded, put

TOPIC_ID = bytes(range(16))


def directory(path: Path, **settings: object) -> LogDirectory:
    """The directory of that path, taken over."""
    ids = iter(bytes([number] * 16) for number in range(1, 9))
    how = DirectorySettings(path=str(path), node_id=1, new_id=lambda: next(ids), **settings)  # type: ignore[arg-type]
    opened = LogDirectory(how)
    try:
        opened.go_on()
    except BaseException:
        opened.abandon()
        raise
    return opened


def test_a_new_directory_says_whose_it_is(tmp_path: Path) -> None:
    """`meta.properties` is made once, and read ever after."""
    first = directory(tmp_path / "data")
    first.close()
    again = directory(tmp_path / "data", cluster_id=first.meta.cluster_id)
    assert again.meta == first.meta
    again.close()
    text = (tmp_path / "data" / "meta.properties").read_text()
    assert text.splitlines() == [
        "cluster.id=AQEBAQEBAQEBAQEBAQEBAQ",
        "directory.id=AgICAgICAgICAgICAgICAg",
        "node.id=1",
        "version=1",
    ]
    with pytest.raises(ConfigError, match="is of cluster AQEB"):
        directory(tmp_path / "data", cluster_id="another")


def test_a_second_owner_is_refused(tmp_path: Path) -> None:
    """Who comes second is told so; when the first has left, the next may come."""
    first = directory(tmp_path)
    with pytest.raises(ConfigError, match="is in use by another process"):
        directory(tmp_path)
    first.close()
    directory(tmp_path).close()


def test_a_broker_of_kafka_is_shut_out_too(tmp_path: Path) -> None:
    """The lock is also the one that Java takes, which another process sees."""
    first = directory(tmp_path)
    child = os.fork()
    if child == 0:
        fd = os.open(tmp_path / ".lock", os.O_RDWR)
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os._exit(3)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
    first.close()


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    """A path that is a file is refused in words."""
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(ConfigError, match="no directory"):
        directory(tmp_path / "file")


def test_damaged_meta_properties_are_refused(tmp_path: Path) -> None:
    """A directory that does not say whose it is stays as it is, and unlocked."""
    (tmp_path / "meta.properties").write_text("version=1\n")
    for _ in range(2):
        with pytest.raises(ConfigError, match="lacks cluster"):
            directory(tmp_path)


def test_partitions_and_their_records_come_back(tmp_path: Path) -> None:
    """After an orderly end nothing is scanned, and everything is there."""
    first = directory(tmp_path)
    store = first.store("orders", 3, TOPIC_ID)
    put(store, put(store, 0, count=3))
    assert first.store("orders", 3, TOPIC_ID) is store
    first.close(broker_epoch=7)
    marker = json.loads((tmp_path / ".kafka_cleanshutdown").read_text())
    assert marker == {"version": 0, "brokerEpoch": 7}
    again = directory(tmp_path)
    assert again.partitions == {("orders", 3): TOPIC_ID}
    assert again.report.lines() == []
    assert again.report.scanned_bytes == 0
    found = again.store("orders", 3, TOPIC_ID)
    assert found.segments()[-1].next_offset == 4
    assert len(contents(found)) > 100
    assert not (tmp_path / ".kafka_cleanshutdown").exists()
    again.close()


def test_a_killed_owner_costs_a_scan(tmp_path: Path) -> None:
    """Without the mark every partition is checked, and a torn end is cut and told."""
    first = directory(tmp_path)
    put(first.store("a", 0, TOPIC_ID), 0)
    put(first.store("b", 0, TOPIC_ID), 0)
    first.abandon()
    log = tmp_path / "b-0" / "00000000000000000000.log"
    whole = log.stat().st_size
    log.write_bytes(log.read_bytes() + encoded(1, 1, 5)[:-1])
    again = directory(tmp_path)
    assert not again.report.was_clean
    (cut,) = again.report.cuts
    assert (cut.path, cut.position) == (str(log), whole)
    assert "the last batch is cut short" in again.report.lines()[-1]
    assert again.store("b", 0, TOPIC_ID).segments()[-1].next_offset == 1
    again.close()
    assert directory(tmp_path).report.was_clean


def test_a_deleted_partition_leaves_nothing(tmp_path: Path) -> None:
    """The partition's folder goes; one that a crash left half deleted goes at the next opening."""
    first = directory(tmp_path)
    put(first.store("orders", 0, TOPIC_ID), 0)
    first.store("orders", 0).delete()
    assert first.partitions == {}
    first.close()
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == []
    left = tmp_path / f"orders-1.{TOPIC_ID.hex()}-delete"
    left.mkdir()
    again = directory(tmp_path)
    assert again.partitions == {}
    assert not left.exists()
    again.close()


def test_a_topic_of_the_same_name_begins_anew(tmp_path: Path) -> None:
    """The folder of another topic id is put aside, not mixed in."""
    first = directory(tmp_path)
    put(first.store("orders", 0, TOPIC_ID), 0)
    first.close()
    again = directory(tmp_path)
    store = again.store("orders", 0, bytes(16))
    assert store.segments()[-1].next_offset == 0
    stray = tmp_path / f"orders-0.{TOPIC_ID.hex()}-stray"
    assert stray.is_dir()
    assert f"{stray}: kept under this name, no topic knows it" in again.report.lines()
    again.close()


def test_the_longest_topic_name_can_be_deleted(tmp_path: Path) -> None:
    """A name of 249 characters leaves no room for an ending, which is made."""
    first = directory(tmp_path)
    name = "t" * 249
    put(first.store(name, 1000, TOPIC_ID), 0)
    first.delete(name, 1000)
    first.close()


def test_log_starts_are_kept_at_once(tmp_path: Path) -> None:
    """Where a log starts after DeleteRecords survives a process that is killed."""
    first = directory(tmp_path)
    store = first.store("orders", 0, TOPIC_ID)
    put(store, put(store, put(store, 0)))
    store.keep_log_start(2)
    first.abandon()
    again = directory(tmp_path)
    assert again.store("orders", 0, TOPIC_ID).kept().log_start_offset == 2
    again.close()


def test_many_partitions_open_with_few_files(tmp_path: Path) -> None:
    """More partitions than may be open at once are written, left, and read again."""
    fds = Path("/proc/self/fd")
    before = len(list(fds.iterdir()))
    first = directory(tmp_path, open_file_limit=8)
    for number in range(100):
        put(first.store("t", number, TOPIC_ID), 0)
    assert len(list(fds.iterdir())) <= before + 9
    first.close()
    assert len(list(fds.iterdir())) <= before
    again = directory(tmp_path, open_file_limit=8)
    assert len(again.partitions) == 100
    for number in range(100):
        store = again.store("t", number, TOPIC_ID)
        assert store.read(0, 1, before_offset=1) == encoded(0, 1, 1_700_000_000_000)
    again.close()


def test_checkpoints_say_where_partitions_are(tmp_path: Path) -> None:
    """The three checkpoints are Kafka's: version, count, topic, partition, offset."""
    first = directory(tmp_path)
    put(first.store("b", 0, TOPIC_ID), 0, count=4)
    put(first.store("a", 10, TOPIC_ID), 0)
    first.store("a", 10).keep_log_start(1)
    first.close()
    names = ("recovery-point", "replication", "log-start")
    texts = [(tmp_path / f"{n}-offset-checkpoint").read_text().split("\n") for n in names]
    assert texts[0] == texts[1] == ["0", "2", "a 10 1", "b 0 4", ""]
    assert texts[2] == ["0", "1", "a 10 1", ""]


def test_flush_ms_is_honoured(tmp_path: Path) -> None:
    """A partition that waits for its flush is flushed when the time is over."""
    first = directory(tmp_path)
    store = first.store("a", 0, TOPIC_ID, SegmentSettings(flush_ms=100))
    put(store, 0, at_ms=1_000)
    first.flush_due(1_099)
    assert (store.flushed_offset, store.flush_deadline_ms()) == (0, 1_100)
    first.flush_due(1_100)
    assert (store.flushed_offset, store.flush_deadline_ms()) == (1, None)
    first.close()


def test_folders_of_others_stay(tmp_path: Path) -> None:
    """A name that ends as those of deletions do, and a second number of a partition."""
    first = directory(tmp_path)
    first.store("t", 0, bytes(16))
    first.abandon()
    for name in ("backup-delete", "t-00", "t-0.00.bak-delete"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine").write_text("kept")
    (tmp_path / f"t-1.{bytes(16).hex()}-delete").mkdir()
    opened = directory(tmp_path)
    opened.go_on()
    assert list(opened.partitions) == [("t", 0)]
    assert opened.report.removed == [f"{tmp_path}/t-1.{bytes(16).hex()}-delete"]
    assert len(list(tmp_path.glob("*/mine"))) == 3


def test_what_is_put_aside_replaces_nothing(tmp_path: Path) -> None:
    """Partitions whose names are cut, and one that comes back, have each a name of their own."""
    opened = directory(tmp_path)
    for partition in (0, 1, 0):
        opened.store("a" * 249, partition, bytes(16)).let_go()
        opened.put_aside("a" * 249, partition)
    assert len(set(opened.report.strays)) == len(list(tmp_path.glob("*-stray"))) == 3


def test_an_inventory_that_cannot_forget_is_asked_again(tmp_path: Path) -> None:
    """Each cleaning of a topic waits until the inventory names its segments no more."""
    files = FaultyFiles()
    how = DirectorySettings(path=str(tmp_path), node_id=1, new_id=lambda: bytes(16))
    opened = LogDirectory(how, files)
    opened.go_on()
    stores = [opened.store("t", partition, bytes(16)) for partition in (0, 1)]
    for store in stores:
        put(store, 0, count=3)
        store.roll(3)
    opened.keep_inventory()
    files.faults.append(Fault(verb="write", errno=errno.ENOSPC, path="log-inventory", times=2))
    for store in stores:
        with pytest.raises(OSError, match="log-inventory"):
            store.replace([0], b"", ())
    stores[0].replace([0], b"", ())
    opened.abandon()
    again = directory(tmp_path)
    again.go_on()
    assert again.report.losses == []
