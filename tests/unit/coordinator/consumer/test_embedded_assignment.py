"""The bytes of an assignment that a classic member of a consumer group is told."""

from coordinator_sim.coordinator.modern.consumer.embedded import read_assignment, written_assignment
from coordinator_sim.coordinator.topics import KnownTopic, KnownTopics
from coordinator_sim.kafka.profiles import profile_named

LOW, HIGH = bytes(15) + b"\x01", bytes(15) + b"\x11"
"""Topic ids whose hashes, 1 and 17, share a bucket of a HashMap of 16."""


def test_topics_of_one_bucket_keep_the_order_of_the_members_record() -> None:
    """Kafka replays the record into a map, whose buckets keep the order of insertion.

    Source: Utils.assignmentFromTopicPartitions, toConsumerProtocolAssignment.
    """
    topics = KnownTopics()
    topics.change([KnownTopic("low", LOW, 1), KnownTopic("high", HIGH, 33)], (), 1)
    for held in ({LOW: [0], HIGH: [0]}, {HIGH: [0], LOW: [0]}):
        data = written_assignment(held, topics, b"\0\1")
        order = [topic for topic, _ in read_assignment(data, profile_named("4.4")).partitions]
        assert order == [topics.by_id[topic_id].name for topic_id in held]
