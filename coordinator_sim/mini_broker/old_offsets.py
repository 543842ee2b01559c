"""Offsets of version 0 in a served cluster: its image has the nodes, its journal keeps them."""

from collections.abc import Callable

from coordinator_sim.broker.zookeeper_offsets import ZooKeeperOffsets
from coordinator_sim.mini_broker.changes import Change, OffsetNodeWritten
from coordinator_sim.mini_broker.image import ClusterImage


def old_offsets(
    metadata_limit: int,
    image: ClusterImage,
    *,
    change: Callable[[Change], None],
    trouble: Callable[[str], None],
) -> ZooKeeperOffsets:
    """The offsets that the brokers of a cluster keep in its ZooKeeper.

    Args:
        metadata_limit: `offset.metadata.max.bytes`.
        image: Of the cluster.
        change: Changes it, journal first; a commit that raises OSError there is refused.
        trouble: Told of that.
    """

    def write(path: str, data: str) -> None:
        try:
            change(OffsetNodeWritten(path, data))
        except OSError as error:
            trouble(f"{path}: {error}; refused")
            raise

    return ZooKeeperOffsets(metadata_limit, image.offset_nodes, write)
