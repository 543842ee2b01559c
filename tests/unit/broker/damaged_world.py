"""A log directory with something of everything in it, ways to damage it, and what is left then."""

import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from msgspec import structs

from coordinator_sim.broker.contract import Instants
from coordinator_sim.broker.metadata.changes import AclCreated, ConfigsChanged, ScramSet
from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.errors import ConfigError
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.log.format.segments import SegmentReader
from coordinator_sim_conformance.field_frames import Fields
from tests.unit.broker.data_world import batch_of, partition_of
from tests.unit.broker.kept_world import NOW, SETTINGS, KeptWorld

GROUPS = tuple(f"g{number}" for number in range(6))
_ACL = AclCreated(2, "t", 3, "User:u", "*", 3, 3)
_SCRAM = ScramSet("u", 1, 4096, b"salt", b"stored", b"server")
_SETTINGS = structs.replace(
    SETTINGS,
    transaction_partitions=2,
    coordinator=CoordinatorConfig(
        offsets_topic_num_partitions=2, group_initial_rebalance_delay_ms=0
    ),
)


class Facts(NamedTuple):
    """What clients of a cluster were told is stored."""

    committed: dict[str, int]
    records: bytes
    rules: tuple[object, ...]
    transactions: list[Fields]


def world_of(path: Path, *, accept_loss: bool = False) -> KeptWorld:
    """The cluster on a directory."""
    return KeptWorld(path, accept_loss=accept_loss, settings=_SETTINGS)


def facts_of(world: KeptWorld) -> Facts:
    """What the cluster answers now."""
    image = world.cluster.image
    rules = (image.acls, image.scram, image.configs, image.topic_names, image.next_producer_id)
    asked = {"transactionalIds": ["id", "open"]}
    described = world.call(ApiKey.DESCRIBE_TRANSACTIONS, 0, asked)["transactionStates"]
    return Facts(
        {group: world.committed(group) for group in GROUPS},
        world.records("t"),
        rules,
        [{**each, "transactionStartTimeMs": 0} for each in described],
    )


def _produce(world: KeptWorld, count: int) -> None:
    for number in range(count):
        world.produce("t", b"%d " % number * 40)


def _commit(world: KeptWorld, offset: int) -> None:
    for group in GROUPS:
        for behind in (2, 1, 0):
            world.commit(group, offset - behind)


def _transactions(world: KeptWorld) -> None:
    """Write a committed transaction and an open one."""
    for name, ends in (("id", True), ("open", False)):
        asked = {"transactionalId": name, "transactionTimeoutMs": 60_000}
        producer = world.call(ApiKey.INIT_PRODUCER_ID, 4, asked)
        ids = {key: producer[key] for key in ("producerId", "producerEpoch")}
        added = {
            "v3AndBelowTransactionalId": name,
            "v3AndBelowProducerId": ids["producerId"],
            "v3AndBelowProducerEpoch": ids["producerEpoch"],
            "v3AndBelowTopics": [{"name": "t", "partitions": [0]}],
        }
        world.call(ApiKey.ADD_PARTITIONS_TO_TXN, 3, added)
        records = batch_of(
            b"in a transaction",
            producer_id=ids["producerId"],
            producer_epoch=ids["producerEpoch"],
            base_sequence=0,
            transactional=True,
        )
        entry = {"name": "t", "partitionData": [{"index": 0, "records": records}]}
        request = {"transactionalId": name, "acks": -1, "timeoutMs": 1_000, "topicData": [entry]}
        assert partition_of(world.call(ApiKey.PRODUCE, 9, request))["errorCode"] == 0
        if ends:
            world.call(ApiKey.END_TXN, 3, {"transactionalId": name, **ids, "committed": True})


def fill(path: Path, *, is_clean: bool) -> Facts:
    """Make a directory that was left in order, or one whose second owner was killed."""
    world = world_of(path)
    for name in ("__consumer_offsets", "__transaction_state"):
        world.cluster.topics.create_asked_for(name, NOW)
        world.cluster.change(
            ConfigsChanged(2, name, {"index.interval.bytes": "100", "segment.index.bytes": "40"})
        )
    world.create("t", 1)
    world.cluster.change(
        ConfigsChanged(2, "t", {"index.interval.bytes": "100", "segment.index.bytes": "40"})
    )
    world.create("empty", 1)
    _produce(world, 10)
    _commit(world, 10)
    _transactions(world)
    world.cluster.change(_ACL)
    world.cluster.change(_SCRAM)
    world.leave()
    if not is_clean:
        _produce(world, 10)
        _commit(world, 20)
        world.cluster.change(structs.replace(_ACL, principal="User:v"))
        world.cluster.expire(Instants(NOW.group_ms, NOW.wall_ms + 10_000))
    facts = facts_of(world)
    if is_clean:
        world.cluster.leave()
    else:
        world.directory.abandon()
    return facts


# -- damage ----------------------------------------------------------------------------------


def _flip(at: float) -> Callable[[Path], None]:
    def flip(file: Path) -> None:
        data = bytearray(file.read_bytes())
        if data:
            position = int(at * (len(data) - 1))
            data[position] ^= 1 << position % 8
            file.write_bytes(data)

    return flip


def _cut(part: float) -> Callable[[Path], None]:
    def cut(file: Path) -> None:
        data = file.read_bytes()
        file.write_bytes(data[: int(part * len(data))])

    return cut


def _become_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def _gain_neighbours(file: Path) -> None:
    """Files that belong to nobody, one with a name as a segment has it."""
    for name in (f"{file.name}.bak", f"{file.name}.tmp.old", "notes.txt", f"{77_777:020d}.log"):
        file.with_name(name).write_bytes(b"nothing of the sort")


KINDS: dict[str, Callable[[Path], object]] = {
    "deleted": Path.unlink,
    "emptied": lambda file: file.write_bytes(b""),
    "cut to 7 bytes": lambda file: file.write_bytes(file.read_bytes()[:7]),
    "cut in half": _cut(0.5),
    "cut at three quarters": _cut(0.75),
    "flipped at the beginning": _flip(0),
    "flipped at a third": _flip(1 / 3),
    "flipped in the middle": _flip(0.5),
    "flipped at the end": _flip(1),
    "garbage": lambda file: file.write_bytes(b"\xffgarbage\x00 \xc3\xa4" * 30),
    "other text": lambda file: file.write_bytes(b"version=7\n0\n1\ntopic_id: \xc3\xa4\n"),
    "a folder": _become_folder,
    "neighbours": _gain_neighbours,
}


def files_in(path: Path) -> list[str]:
    """All files below, by their paths inside; without the lock, whose bytes mean nothing."""
    found = (file.relative_to(path) for file in path.rglob("*") if file.is_file())
    return sorted(str(file) for file in found if file.name != ".lock")


def swaps_in(path: Path) -> list[tuple[str, str]]:
    """Neighbours of one kind, to be swapped."""
    by_kind = sorted(files_in(path), key=lambda name: (Path(name).suffix, name))
    return [pair for pair in pairwise(by_kind) if Path(pair[0]).suffix == Path(pair[1]).suffix]


def swap(path: Path, pair: tuple[str, str]) -> None:
    """Let two files hold each other's bytes."""
    first, second = (path / name for name in pair)
    data = first.read_bytes()
    first.write_bytes(second.read_bytes())
    second.write_bytes(data)


# -- what is left ----------------------------------------------------------------------------


def _tries(path: Path, *, accept_loss: bool) -> KeptWorld | str:
    """The cluster, or why it does not start."""
    try:
        return world_of(path, accept_loss=accept_loss)
    except ConfigError as error:
        return str(error)
    except OSError as error:
        return f"{error.filename}: {error.strerror}"


def _is_named(text: str, names: tuple[str, ...]) -> bool:
    """Whether a message names a damaged file, or the partition that it is in."""
    return any(name in text or ("/" in name and name.split("/")[0] in text) for name in names)


def _cluster_events(world: KeptWorld, before: Facts, after: Facts) -> bool:
    """Whether clients learn from an answer that records are damaged."""
    reader = SegmentReader(after.records)
    whole = sum(batch.size for batch in reader)
    is_checked = reader.damage is not None and before.records.startswith(after.records[:whole])
    is_refused = len(after.records) < len(before.records) and bool(world.troubles)
    same_else = after._replace(records=b"") == before._replace(records=b"")
    return same_else and (is_checked or is_refused)


def complaint_about(path: Path, before: Facts, *names: str, told_is_enough: bool) -> str | None:
    """What is wrong with how a damaged directory is met; None when nothing is.

    Args:
        path: Of the directory.
        before: What clients had been told.
        names: Files that were damaged.
        told_is_enough: Whether a line that names the file will do where something is gone: what a
            killed process had not finished looks the same.
    """
    world = _tries(path, accept_loss=False)
    if isinstance(world, str):
        wrong = _complaint_about_refusal(path, world, names)
        if wrong is not None or "--accept-loss" not in world:
            return wrong
        world = _tries(path, accept_loss=True)
        if isinstance(world, str):
            return None if _is_named(world, names) else f"accepted, and then: {world}"
        if not any(line.startswith("lost: ") for line in world.troubles):
            return f"nothing said of what is lost: {world.troubles}"
        before = facts_of(world)
    after = facts_of(world)
    lines = "\n".join(world.troubles)
    is_told = _cluster_events(world, before, after) or (told_is_enough and _is_named(lines, names))
    if after != before and not is_told:
        world.directory.abandon()
        return f"silent: {lines or 'no line'}"
    world.cluster.leave()
    last = _tries(path, accept_loss=False)
    if isinstance(last, str):
        return f"not served again: {last}"
    is_same = facts_of(last) == after
    last.directory.abandon()
    return None if is_same else "others facts the time after"


def _complaint_about_refusal(path: Path, message: str, names: tuple[str, ...]) -> str | None:
    again = _tries(path, accept_loss=False)
    if not isinstance(again, str):
        again.directory.abandon()
        return f"refused once only: {message}"
    return None if _is_named(message, names) else f"names nothing: {message}"


def copied(base: Path, to: Path) -> Path:
    """A fresh copy of a directory."""
    shutil.rmtree(to, ignore_errors=True)
    shutil.copytree(base, to)
    return to
