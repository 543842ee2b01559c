"""How long one assignment takes, by assignor and size of the group.

Prints CPU-seconds of a fresh assignment and of the one after a member joined, and beside them
the time of sorting the partitions alone, in the same run.
"""

from time import process_time

from coordinator_sim.assignors.contract import AssignorMember
from coordinator_sim.assignors.registry import CONSUMER_ASSIGNORS, make_consumer_assignor
from coordinator_sim.assignors.user_data import encode_sticky_user_data
from coordinator_sim.kafka.resources import TopicPartition
from coordinator_sim.messages.embedded.contents import Subscription

SIZES = ((10, 100, 50), (20, 250, 300), (50, 200, 1000))
"""Topics, partitions of each, members."""


def group(
    count: int, topics: list[str], owned: dict[str, list[TopicPartition]], *, mixed: bool
) -> list[AssignorMember]:
    """Members that subscribe to all topics, or to half of them each."""
    members = []
    for number in range(count):
        member_id = f"consumer-{number}"
        own = tuple(owned.get(member_id, ()))
        wanted = [t for i, t in enumerate(topics) if not mixed or (number + i) % 2 == 0]
        members.append(
            AssignorMember(
                member_id=member_id,
                subscription=Subscription(
                    topics=tuple(wanted),
                    user_data=encode_sticky_user_data(own, 1) if own else None,
                    owned_partitions=own,
                    generation_id=1 if own else -1,
                ),
            )
        )
    return members


def measure(name: str, size: tuple[int, int, int], *, mixed: bool) -> tuple[float, float, float]:
    """CPU-seconds: fresh, after a join, and of one sort of the partitions."""
    topic_count, partition_count, member_count = size
    topics = {f"topic-{number}": [()] * partition_count for number in range(topic_count)}
    assignor = make_consumer_assignor(name)
    members = group(member_count, list(topics), {}, mixed=mixed)
    start = process_time()
    fresh = assignor.assign(topics, members)
    after_fresh = process_time()
    joined = group(member_count + 1, list(topics), fresh, mixed=mixed)
    before_join = process_time()
    assignor.assign(topics, joined)
    after_join = process_time()
    sorted(tp for own in fresh.values() for tp in own)
    return after_fresh - start, after_join - before_join, process_time() - after_join


def main() -> None:
    """Print one line a measurement."""
    print(f"{'assignor':20} {'group':28} {'fresh':>8} {'join':>8} {'join/sort':>9}")
    for name in CONSUMER_ASSIGNORS:
        for size in SIZES:
            for mixed in (False, True):
                fresh, join, sort = measure(name, size, mixed=mixed)
                shape = f"{size[0]}x{size[1]}, {size[2]} {'mixed' if mixed else 'equal'}"
                print(f"{name:20} {shape:28} {fresh:8.3f} {join:8.3f} {join / sort:9.1f}")


if __name__ == "__main__":
    main()
