"""A damaged log directory: everything is still answered, or the start says what is not."""

import errno
from pathlib import Path

import pytest

from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.metadata.changes import ConfigsChanged, OffsetNodeWritten
from coordinator_sim.disk.files import Files
from coordinator_sim.disk.log_directory import DirectorySettings, LogDirectory
from coordinator_sim.disk.losses import LossError
from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.server.kept_cluster import KeptCluster
from tests.faulty_files import Fault, FaultyFiles, Verb
from tests.unit.broker import damaged_world
from tests.unit.broker.kept_world import NOW, KeptWorld

FIRST = "00000000000000000000.log"
EVERY = [pytest.param(6, id="sixth"), pytest.param(1, id="all", marks=pytest.mark.nightly)]
"""Every sixth of the files in the everyday run."""
LATER = Instants(NOW.group_ms + 10_000, NOW.wall_ms + 10_000)


@pytest.fixture(scope="module", params=["left in order", "killed"])
def filled(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Path, damaged_world.Facts, bool]:
    """A directory, what clients were told, and whether its owner left in order."""
    path = tmp_path_factory.mktemp("filled")
    is_clean = request.param == "left in order"
    return path, damaged_world.fill(path, is_clean=is_clean), is_clean


@pytest.fixture
def clean(tmp_path: Path) -> tuple[Path, damaged_world.Facts]:
    """A directory that was left in order, and what clients were told."""
    path = tmp_path / "data"
    return path, damaged_world.fill(path, is_clean=True)


def test_an_undamaged_directory_tells_nothing(
    filled: tuple[Path, damaged_world.Facts, bool], tmp_path: Path
) -> None:
    """All facts are there again, and an orderly end leaves no line to be told."""
    base, facts, is_clean = filled
    world = damaged_world.world_of(damaged_world.copied(base, tmp_path / "data"))
    assert damaged_world.facts_of(world) == facts
    assert len(world.troubles) == (0 if is_clean else 1)
    world.leave()
    assert world.troubles == []


@pytest.mark.parametrize("every", EVERY)
@pytest.mark.parametrize("kind", damaged_world.KINDS)
def test_no_damage_to_a_file_is_silent(
    filled: tuple[Path, damaged_world.Facts, bool], tmp_path: Path, kind: str, every: int
) -> None:
    """Whatever becomes of one file: all is answered, or the start names the file."""
    base, facts, is_clean = filled
    found = {}
    for name in damaged_world.files_in(base)[
        list(damaged_world.KINDS).index(kind) % every :: every
    ]:
        path = damaged_world.copied(base, tmp_path / "data")
        damaged_world.KINDS[kind](path / name)
        wrong = damaged_world.complaint_about(path, facts, name, told_is_enough=not is_clean)
        if wrong is not None:
            found[name] = wrong
    assert found == {}


@pytest.mark.parametrize("every", EVERY)
def test_no_swap_of_files_is_silent(
    filled: tuple[Path, damaged_world.Facts, bool], tmp_path: Path, every: int
) -> None:
    """Two files of one kind that hold each other's bytes are noticed too."""
    base, facts, is_clean = filled
    found = {}
    for pair in damaged_world.swaps_in(base)[::every]:
        path = damaged_world.copied(base, tmp_path / "data")
        damaged_world.swap(path, pair)
        wrong = damaged_world.complaint_about(path, facts, *pair, told_is_enough=not is_clean)
        if wrong is not None:
            found[pair] = wrong
    assert found == {}


# -- what is said ----------------------------------------------------------------------------


def test_a_refusal_names_all_that_is_lost(clean: tuple[Path, damaged_world.Facts]) -> None:
    """One message has every file, what it means to groups and producers, and the way on."""
    path, _ = clean
    segment = path / "__consumer_offsets-0" / FIRST
    segment.write_bytes(segment.read_bytes()[:-30])
    (path / "t-0" / FIRST).unlink()
    with pytest.raises(LossError) as refused:
        damaged_world.world_of(path)
    head, *losses, advice = str(refused.value).splitlines()
    assert head == f"{path} has lost data that was acknowledged:"
    assert losses[0].startswith(f"  {segment} is damaged at byte ")
    assert "committed offsets and members of groups in __consumer_offsets-0" in losses[0]
    assert losses[1].startswith(f"  {path}/t-0/{FIRST} is gone: records 0 to ")
    assert len(losses) == 2
    assert "--accept-loss" in advice


def test_what_is_accepted_is_kept_aside(clean: tuple[Path, damaged_world.Facts]) -> None:
    """Bytes behind the damage are in a file that neither we nor Kafka read."""
    path, facts = clean
    segment = path / "__consumer_offsets-0" / FIRST
    before = segment.read_bytes()
    damaged = before[:200] + b"?" + before[201:]
    segment.write_bytes(damaged)
    world = damaged_world.world_of(path, accept_loss=True)
    assert damaged == segment.read_bytes() + segment.with_name(f"{FIRST}.damaged").read_bytes()
    after = damaged_world.facts_of(world)
    changed = [
        group for group, offset in after.committed.items() if offset != facts.committed[group]
    ]
    assert 0 < len(changed) < len(facts.committed)
    assert after.records == facts.records
    assert any(line.startswith(f"lost: {segment} is damaged") for line in world.troubles)
    world.accept_loss = False
    world.leave()
    assert world.troubles == []


def test_a_lost_journal_takes_no_records_along(clean: tuple[Path, damaged_world.Facts]) -> None:
    """Without `metadata.log` topics are found by their folders, once the loss is accepted."""
    path, facts = clean
    for left in (None, b"CSMJ\0\1\0"):
        if left is None:
            (path / "metadata.log").unlink()
        else:
            (path / "metadata.log").write_bytes(left)
        with pytest.raises(LossError, match=r"metadata.log (is gone|is damaged).*ACLs, users"):
            damaged_world.world_of(path)
        world = damaged_world.world_of(path, accept_loss=True)
        after = damaged_world.facts_of(world)
        assert (after.committed, after.records) == (facts.committed, facts.records)
        world.cluster.leave()


def test_changes_cut_off_between_two_frames_are_missed(
    clean: tuple[Path, damaged_world.Facts],
) -> None:
    """A journal whose frames are all whole, and which lacks the last, is told from a whole one."""
    path, _ = clean
    journal = path / "metadata.log"
    head, *frames = _frames_of(journal)
    size = len(head + b"".join(frames))
    journal.write_bytes(head + b"".join(frames[:-2]))
    left = journal.stat().st_size
    with pytest.raises(LossError, match=rf"ends at byte {left}, and {size} bytes were ack"):
        damaged_world.world_of(path)


def test_lost_offsets_of_version_0_are_missed(tmp_path: Path) -> None:
    """ZooKeeper's nodes are in the journal, and its end is told from theirs too."""
    world = KeptWorld(tmp_path)
    for number in range(3):
        world.cluster.change(OffsetNodeWritten("/consumers/g/offsets/t/0", f"{number}"))
    world.cluster.expire(LATER)
    world.directory.abandon()
    head, *frames = _frames_of(tmp_path / "metadata.log")
    (tmp_path / "metadata.log").write_bytes(head + b"".join(frames[:-1]))
    with pytest.raises(LossError, match=r"metadata\.log ends at byte"):
        world.begin()


@pytest.mark.parametrize("kind", ["swapped", "twice", "twice at the end", "reversed"])
def test_changes_in_another_order_are_told(
    filled: tuple[Path, damaged_world.Facts, bool], tmp_path: Path, kind: str
) -> None:
    """Whole frames that are not where they were: refused, and once accepted served for good."""
    base, _, is_clean = filled
    path = damaged_world.copied(base, tmp_path / "data")
    journal = path / "metadata.log"
    head, *frames = _frames_of(journal)
    if kind == "swapped":
        frames[0], frames[-1] = frames[-1], frames[0]
    elif kind == "reversed":
        frames.reverse()
    else:
        frames.insert(3 if kind == "twice" else len(frames), frames[-1])
    journal.write_bytes(head + b"".join(frames))
    if is_clean or kind != "twice at the end":
        with pytest.raises(LossError, match=f"{journal} "):
            damaged_world.world_of(path)
        world = damaged_world.world_of(path, accept_loss=True)
        world.accept_loss = False
        world.kill()
        assert world.produce("t", b"after")[0] == 0
        world.leave()
        assert world.troubles == []


def test_a_journal_that_was_made_shorter_is_not_missed(tmp_path: Path) -> None:
    """The inventory forgets the long journal before the short one takes its place."""
    world = KeptWorld(tmp_path)
    world.create("t")
    text = "x" * 100_000
    for number in range(16):
        world.cluster.change(ConfigsChanged(2, "t", {"description": f"{number}{text}"}))
        world.cluster.expire(LATER)
    assert (tmp_path / "metadata.log").stat().st_size < 1 << 20
    world.kill()
    assert len(world.troubles) == 1


def _frames_of(journal: Path) -> list[bytes]:
    """The header, and each frame."""
    data = journal.read_bytes()
    found, position = [data[:8]], 8
    while position < len(data):
        end = position + 8 + int.from_bytes(data[position : position + 4], "big")
        found.append(data[position:end])
        position = end
    return found


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("version=1", "version=2", "says|version=2, and 0 and 1 are known"),
        ("node.id=1", "node.id=3", "says node.id=3, and the directory was left with node.id=1"),
        ("cluster.id=", "cluster.id=x", "says cluster.id=x.*remove log-inventory"),
    ],
)
def test_meta_properties_that_contradict_are_refused(
    clean: tuple[Path, damaged_world.Facts], old: str, new: str, message: str
) -> None:
    """The line names the file, what it says and what to do; the directory stays as it is."""
    path, facts = clean
    meta = path / "meta.properties"
    good = meta.read_text()
    meta.write_text(good.replace(old, new))
    with pytest.raises(ConfigError, match=rf"{meta}: .*({message})"):
        damaged_world.world_of(path)
    meta.write_text(good)
    assert damaged_world.facts_of(damaged_world.world_of(path)) == facts


def test_a_directory_of_another_node_is_refused(tmp_path: Path) -> None:
    """A Kafka broker's directory whose node is none of ours would have partitions nobody leads."""
    tmp_path.joinpath("meta.properties").write_text("cluster.id=c\nnode.id=5\nversion=1\n")
    with pytest.raises(
        ConfigError, match=r"node.id=5, and the brokers here are 1 to 1: give --set node.id=5"
    ):
        KeptWorld(tmp_path)
    assert KeptWorld(tmp_path, brokers=5).cluster.settings.cluster_id == "c"


@pytest.mark.parametrize("end", ["leave", "kill"])
@pytest.mark.parametrize("text", [None, "0\n1\nt 0 4\n", "0\n1\nt 0 1\n"])
def test_a_wrong_log_start_hides_and_shows_no_record(
    tmp_path: Path, end: str, text: str | None
) -> None:
    """Records begin where DeleteRecords left them, whatever became of the checkpoint."""
    world = KeptWorld(tmp_path)
    world.create("t")
    for _ in range(5):
        world.produce("t", b"x")
    entry = {"name": "t", "partitions": [{"partitionIndex": 0, "offset": 2}]}
    world.call(ApiKey.DELETE_RECORDS, 2, {"topics": [entry], "timeoutMs": 1_000})
    if end == "leave":
        world.cluster.leave()
    else:
        world.directory.abandon()
    checkpoint = tmp_path / "log-start-offset-checkpoint"
    checkpoint.unlink()
    if text is not None:
        checkpoint.write_text(text)
    world.begin()
    log = world.cluster.logs.log_of("t", 0)
    assert log is not None
    assert (log.log_start_offset, log.end_offset) == (2, 5)
    assert any(str(checkpoint) in line for line in world.troubles)


# -- no false alarm --------------------------------------------------------------------------


def test_what_was_deleted_on_purpose_is_not_missed(tmp_path: Path) -> None:
    """Deleted topics, others of their names, and deleted records, before a kill and after it."""
    world = KeptWorld(tmp_path)
    for name in ("t", "again", "gone"):
        world.create(name)
        for _ in range(5):
            world.produce(name, b"x" * 100)
    world.leave()
    world.cluster.expire(LATER)
    entry = {"name": "t", "partitions": [{"partitionIndex": 0, "offset": 5}]}
    world.call(ApiKey.DELETE_RECORDS, 2, {"topics": [entry], "timeoutMs": 1_000})
    names = [{"name": "again"}, {"name": "gone"}]
    world.call(ApiKey.DELETE_TOPICS, 6, {"topics": names, "timeoutMs": 1_000})
    world.create("again")
    world.produce("again", b"new")
    world.kill()
    assert [line for line in world.troubles if "not left in order" not in line] == []
    assert b"new" in world.records("again")


def test_a_topic_that_is_made_again_keeps_nothing_of_the_one_before(tmp_path: Path) -> None:
    """Where the deleted topic's log began and how far it was flushed says nothing of the new one.

    Two partitions whose checkpoints a kill leaves as they were cost one writing each.
    """
    world = KeptWorld(tmp_path)
    for _ in range(2):
        world.create("t")
        for _ in range(20):
            world.produce("t", b"old")
        entry = {"name": "t", "partitions": [{"partitionIndex": 0, "offset": 20}]}
        world.call(ApiKey.DELETE_RECORDS, 2, {"topics": [entry], "timeoutMs": 1_000})
        world.leave()
        world.call(ApiKey.DELETE_TOPICS, 6, {"topics": [{"name": "t"}], "timeoutMs": 1_000})
        world.create("t")
        for _ in range(30):
            world.produce("t", b"new")
        world.kill()
        assert world.records("t").count(b"new") == 30
        checkpoint = tmp_path / "recovery-point-offset-checkpoint"
        assert "t 0 " not in checkpoint.read_text()
        world.call(ApiKey.DELETE_TOPICS, 6, {"topics": [{"name": "t"}], "timeoutMs": 1_000})


def test_what_the_cleaner_removed_is_not_missed(tmp_path: Path) -> None:
    """Segments that were merged since the inventory was written are no loss after a kill."""
    world = KeptWorld(tmp_path)
    world.create("t")
    world.cluster.topics.create_asked_for("__consumer_offsets", NOW)
    small = {"index.interval.bytes": "100", "segment.index.bytes": "40"}
    world.cluster.change(ConfigsChanged(2, "__consumer_offsets", {**small}))
    for offset in range(60):
        world.commit("g", offset)
    world.leave()
    before = len(list(tmp_path.glob("__consumer_offsets-*/*.log")))
    world.commit("g", 60)
    day = Instants(NOW.group_ms, NOW.wall_ms)
    for _ in range(40):
        day = Instants(day.group_ms + 400_000, day.wall_ms + 6_000)
        world.cluster.expire(day)
        world.cluster.next_group_deadline_ms()
    assert len(list(tmp_path.glob("__consumer_offsets-*/*.log"))) < before / 2
    world.kill()
    assert world.committed("g") == 60


def test_a_killed_owner_leaves_a_lower_bound(tmp_path: Path) -> None:
    """Records of the last seconds may be a torn write; those that were written down are missed."""
    world = KeptWorld(tmp_path)
    world.create("t")
    for number in range(6):
        world.produce("t", b"%d" % number * 50)
    world.cluster.expire(LATER)
    assert world.cluster.next_wall_deadline_ms() is None
    world.produce("t", b"after")
    world.directory.abandon()
    segment = tmp_path / "t-0" / FIRST
    data = segment.read_bytes()
    segment.write_bytes(data[:-3])
    world.begin()
    assert f"{segment}: the last batch is cut short; cut at byte" in world.troubles[1]
    world.directory.abandon()
    segment.write_bytes(data[: len(data) // 3])
    with pytest.raises(LossError, match=rf"{segment} is damaged at byte .* records .* of t-0"):
        world.begin()


# -- a disk that refuses ---------------------------------------------------------------------


@pytest.mark.parametrize("verb", ["write", "open", "rename"])
@pytest.mark.parametrize("after", range(2))
def test_a_start_on_a_full_disk_names_the_file(tmp_path: Path, verb: Verb, after: int) -> None:
    """Whichever of the first files cannot be made: the error of the system has its path."""
    files = FaultyFiles()
    files.faults.append(Fault(verb=verb, errno=errno.ENOSPC, after=after))
    how = DirectorySettings(path=str(tmp_path), node_id=1, new_id=lambda: bytes(16))
    with pytest.raises(OSError, match="No space left") as refused:
        KeptCluster(LogDirectory(how, files))
    assert str(refused.value.filename).startswith(f"{tmp_path}/")


def test_a_write_that_fails_names_its_file() -> None:
    """The system names no file when a descriptor is written to; we do."""
    files = Files()
    fd = files.open("/dev/full")
    with pytest.raises(OSError, match="/dev/full") as refused:
        files.write_all(fd, b"x", 0)
    files.close(fd)
    assert refused.value.errno == errno.ENOSPC
