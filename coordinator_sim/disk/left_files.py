"""The small files of a log directory as its last owner left them: read once, checked, not changed.

Damaged checkpoints are no loss: the inventory has the same data, and without it the batches do.
Source: kafka trunk, core/.../log/LogManager.scala (loadLogs): a checkpoint that cannot be read
counts as empty.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

from coordinator_sim.disk.checkpoints import (
    CLEAN_SHUTDOWN,
    HIGH_WATERMARKS,
    LOG_STARTS,
    META_PROPERTIES,
    RECOVERY_POINTS,
    MetaProperties,
    TopicPartitionOffsets,
    meta_properties_of,
    offsets_of_checkpoint,
)
from coordinator_sim.disk.files import Files
from coordinator_sim.disk.inventory import INVENTORY, Inventory, PartitionEntry, inventory_of
from coordinator_sim.errors import ConfigError, DataError


class LeftFiles(Struct, kw_only=True):
    """Contents of the files above the partitions.

    Attributes:
        meta: Owner of the directory; None if neither `meta.properties` nor the inventory has it.
        has_meta: Whether `meta` comes from `meta.properties` and not from the inventory.
        inventory: The inventory; None if it is missing or damaged.
        has_mark: Whether the last shutdown was clean.
        is_sealed: Whether the inventory was written at that shutdown, and is exact.
        recovery_points: Offsets before which partitions are on disk.
        log_starts: Log starts that differ from the first segment's base offset.
        ends: High watermarks.
        mended: Repairs, one line each.
    """

    meta: MetaProperties | None
    has_meta: bool
    inventory: Inventory | None
    has_mark: bool
    is_sealed: bool
    recovery_points: TopicPartitionOffsets
    log_starts: TopicPartitionOffsets
    ends: TopicPartitionOffsets
    mended: list[str]

    def entries(self) -> Iterator[PartitionEntry]:
        """The partitions of the inventory."""
        return iter(() if self.inventory is None else self.inventory.partitions)


def read_left_files(path: str, files: Files) -> LeftFiles:
    """Read the small files of a directory.

    Args:
        path: Path of the directory.
        files: The file system.

    Raises:
        ConfigError: `meta.properties` is of another version, or contradicts the inventory.
        OSError: A file cannot be read, or a folder has its name.
    """
    mended: list[str] = []
    mark = files.read_whole(f"{path}/{CLEAN_SHUTDOWN}")
    inventory = _inventory(path, files, mended)
    is_sealed = inventory is not None and mark is not None and inventory.mark == mark
    found = [_checkpoint(path, name, files, mended) for name in _CHECKPOINTS]
    meta, has_meta = _meta(path, files, inventory, mended)
    left = LeftFiles(
        meta=meta,
        has_meta=has_meta,
        inventory=inventory,
        has_mark=mark is not None,
        is_sealed=is_sealed,
        recovery_points=found[0],
        log_starts=found[1],
        ends=found[2],
        mended=mended,
    )
    if is_sealed:
        _trust_inventory(left, path)
    return left


_CHECKPOINTS: Final = (RECOVERY_POINTS, LOG_STARTS, HIGH_WATERMARKS)
_OTHERS: Final = "other offsets than the directory was left with"


def _inventory(path: str, files: Files, mended: list[str]) -> Inventory | None:
    name = f"{path}/{INVENTORY}"
    data = files.read_whole(name)
    if data is None:
        return None
    try:
        return inventory_of(data)
    except DataError as error:
        mended.append(f"{name}: {error}; made anew, the batches are checked instead")
        return None


def _meta(
    path: str, files: Files, inventory: Inventory | None, mended: list[str]
) -> tuple[MetaProperties | None, bool]:
    name = f"{path}/{META_PROPERTIES}"
    data = files.read_whole(name)
    known = None if inventory is None else inventory.meta
    problem = "missing"
    if data is not None:
        try:
            meta = meta_properties_of(data.decode("utf-8", "replace"))
        except ConfigError as error:
            raise ConfigError(f"{name}: {error}") from error
        except DataError as error:
            problem = str(error)
        else:
            _compare_meta(name, meta, known)
            return meta, True
    if known is not None:
        mended.append(f"{name}: {problem}; made anew as it was, of cluster {known.cluster_id}")
    elif data is not None:
        raise ConfigError(f"{name}: {problem}; write both lines again, or restore the file")
    return known, False


def _compare_meta(name: str, meta: MetaProperties, known: MetaProperties | None) -> None:
    """Refuse a directory whose ids differ from the inventory's: another owner wrote them."""
    if known is None:
        return
    for key, now, then in (
        ("cluster.id", meta.cluster_id, known.cluster_id),
        ("node.id", meta.node_id, known.node_id),
        ("directory.id", meta.directory_id, known.directory_id),
    ):
        if now != then:
            raise ConfigError(
                f"{name}: says {key}={now}, and the directory was left with {key}={then}: write "
                f"that again, or remove {INVENTORY} beside it to keep the new value"
            )


def _checkpoint(path: str, name: str, files: Files, mended: list[str]) -> TopicPartitionOffsets:
    data = files.read_whole(f"{path}/{name}")
    try:
        return {} if data is None else offsets_of_checkpoint(data.decode("ascii", "replace"))
    except DataError as error:
        mended.append(f"{path}/{name}: {error}; made anew")
        return {}


def _trust_inventory(left: LeftFiles, path: str) -> None:
    """Correct missing or different checkpoints by the inventory."""
    wrong = {name: "missing" for name in _CHECKPOINTS if not Path(f"{path}/{name}").exists()}
    for entry in left.entries():
        place = (entry.topic, entry.partition)
        first = entry.segments[0].base_offset if entry.segments else 0
        if max(left.log_starts.get(place, 0), first) != entry.log_start_offset:
            left.log_starts[place] = entry.log_start_offset
            wrong.setdefault(LOG_STARTS, _OTHERS)
        if left.recovery_points.get(place, 0) > entry.end_offset:
            left.recovery_points[place] = 0
            wrong.setdefault(RECOVERY_POINTS, _OTHERS)
        if left.ends.get(place, 0) != entry.end_offset:
            left.ends[place] = entry.end_offset
            wrong.setdefault(HIGH_WATERMARKS, _OTHERS)
    for name, problem in wrong.items():
        if not any(line.startswith(f"{path}/{name}: ") for line in left.mended):
            left.mended.append(f"{path}/{name}: {problem}; made anew")
