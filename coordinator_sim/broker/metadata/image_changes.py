"""The fewest changes that produce an image; a journal that has grown is rewritten to them."""

from collections.abc import Iterator

from coordinator_sim.broker.metadata import changes
from coordinator_sim.broker.metadata.image import MetadataImage, TopicState


def changes_of(image: MetadataImage) -> Iterator[changes.Change]:
    """The changes that turn an empty image into this one."""
    for topic in image.topics.values():
        yield from _topic(topic)
    for (resource_type, name), values in image.configs.items():
        yield changes.ConfigsChanged(resource_type, name, dict(values))
    for entity, quotas in image.quotas.items():
        for key, value in quotas.items():
            yield changes.QuotaSet(entity, key, value)
    yield from image.acls
    yield from image.scram.values()
    if image.next_producer_id:
        yield changes.ProducerIdsReserved(image.next_producer_id)
    for feature, level in image.features.items():
        yield changes.FeatureSet(feature, level)
    for broker_id, epoch in image.broker_epochs.items():
        yield changes.BrokerStarted(broker_id, epoch)
    for path, data in image.offset_nodes.items():
        if data is not None:
            yield changes.OffsetNodeWritten(path, data)
    yield changes.VersionReached(image.version, image.start_count)


def _topic(topic: TopicState) -> Iterator[changes.Change]:
    replicas = tuple(partition.replicas for partition in topic.partitions)
    yield changes.TopicCreated(topic.name, topic.topic_id, replicas)
    for number, partition in enumerate(topic.partitions):
        first = partition.replicas[0] if partition.replicas else None
        if (partition.leader_id, partition.leader_epoch) == (first, 0) and (
            partition.isr == partition.replicas
        ):
            continue
        yield changes.LeaderElected(
            topic.name, number, partition.leader_id, partition.leader_epoch, partition.isr
        )
