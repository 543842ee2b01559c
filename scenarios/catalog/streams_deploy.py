"""A rolling deploy of a Kafka Streams application with the streams protocol (KIP-1071).

Three instances with one thread each count the words of a topic of six partitions. Each counting
task has a store of 500 MB, which takes ten seconds to restore from its changelog. The instances are
restarted one after the other; each is away for 8 s and finds its disk again.

Look at: TASKS_STOPPED and TASKS_STARTED, whose `without_ms` is the time in which nobody processed a
task. Stateless tasks go to another instance at once. A counting task that moves to an instance
without its state restores first, and moves back later. Compare with standby copies, by the setting
`group.streams.num.standby.replicas=1`, and with `streams-lost-disk`.
"""

from typing import Final

from coordinator_sim.sim.scenario import (
    ConsumerSpec,
    RestartMember,
    Scenario,
    StateStoreSpec,
    StreamsGroupSpec,
    SubtopologySpec,
    TopicSpec,
)

INSTANCES: Final = ("streams-1", "streams-2", "streams-3")

GROUP: Final = StreamsGroupSpec(
    group_id="words",
    subtopologies=(
        SubtopologySpec(source_topics=("lines",), writes=("words",)),
        SubtopologySpec(
            repartition_topics=("words",), stores={"totals": StateStoreSpec(bytes=500_000_000)}
        ),
    ),
    members=tuple(ConsumerSpec(name=name, processing_ms=10) for name in INSTANCES),
)

SCENARIO: Final = Scenario(
    name="streams-deploy",
    title="Rolling deploy of a Kafka Streams application",
    story="Three instances with 500 MB of state a task are restarted one by one, 60 s apart, each "
    "away for 8 s; the state stays on their disks.",
    duration_ms=300_000,
    profile="4.4",
    topics=(TopicSpec(name="lines", partitions=6, records_per_s=20),),
    groups=(GROUP,),
    happenings=tuple(
        RestartMember(at_ms=60_000 * number, member=name, down_ms=8_000)
        for number, name in enumerate(INSTANCES, start=1)
    ),
)
