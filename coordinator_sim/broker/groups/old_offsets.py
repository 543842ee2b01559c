"""Offsets of version 0 commits in a served cluster: kept as nodes in the image and the journal."""

from collections.abc import Callable

from coordinator_sim.broker.metadata.changes import Change, OffsetNodeWritten
from coordinator_sim.broker.metadata.image import MetadataImage
from coordinator_sim.broker.metadata.zookeeper_offsets import ZooKeeperOffsets


def old_offsets(
    metadata_limit: int,
    image: MetadataImage,
    *,
    change: Callable[[Change], None],
    trouble: Callable[[str], None],
) -> ZooKeeperOffsets:
    """The offsets that the brokers of a cluster store in ZooKeeper.

    Args:
        metadata_limit: `offset.metadata.max.bytes`.
        image: Metadata of the cluster.
        change: Changes the metadata, journal first; the commit is refused if this raises OSError.
        trouble: Called with one line for a refused commit.
    """

    def write(path: str, data: str) -> None:
        try:
            change(OffsetNodeWritten(path, data))
        except OSError as error:
            trouble(f"{path}: {error}; refused")
            raise

    return ZooKeeperOffsets(metadata_limit, image.offset_nodes, write)
