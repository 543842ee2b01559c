"""Situations of a Kafka Streams application with `group.protocol=streams`, played on a `Stage`.

Sessions last 4 s, heartbeats come every 500 ms, task offsets every 2.25 s; each stateful task has
one standby copy where there is another instance.
"""

from typing import Final

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from tools.recording_stage import Program, Stage

BROKER_SETTINGS: Final = {
    "group.streams.min.session.timeout.ms": "1000",
    "group.streams.session.timeout.ms": "4000",
    "group.streams.min.heartbeat.interval.ms": "500",
    "group.streams.heartbeat.interval.ms": "500",
    "group.streams.initial.rebalance.delay.ms": "500",
    "group.streams.num.standby.replicas": "1",
    "group.streams.min.task.offset.interval.ms": "1000",
    "group.streams.task.offset.interval.ms": "2250",
}
_BEAT: Final = ApiKey.STREAMS_GROUP_HEARTBEAT


def consumer_of(instance: str) -> str:
    """Return the client id of the main consumer of an instance's thread."""
    return f"{instance}-StreamThread-1-consumer"


def _start(stage: Stage, instance: str, *words: str, **settings: str) -> Program:
    return stage.start(consumer_of(instance), *words, **settings)


def trio(stage: Stage) -> None:
    """Start three instances one after the other, close one, and kill another."""
    _start(stage, "a")
    stage.wait(6)
    stage.proxy.set_step("second")
    second = _start(stage, "b")
    stage.wait(8)
    stage.proxy.set_step("third")
    third = _start(stage, "c")
    stage.wait(8)
    stage.proxy.set_step("close")
    second.close()
    stage.wait(4)
    stage.proxy.set_step("kill")
    third.kill()
    stage.wait(8)


def static_close(stage: Stage) -> None:
    """Close a static instance, and start it again within its session."""
    member = _start(stage, "a", group_instance_id="one")
    stage.wait(7)
    stage.proxy.set_step("close")
    member.close()
    stage.proxy.set_step("return")
    _start(stage, "a", group_instance_id="one")
    stage.wait(7)


def refused(stage: Stage) -> None:
    """Refuse heartbeats in turn: temporarily, as of a stranger, and for good."""
    _start(stage, "a")
    stage.wait(6)
    for error in (
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.STREAMS_TOPOLOGY_FENCED,
    ):
        stage.fault(consumer_of("a"), _BEAT, error, error.name.lower())
        stage.wait(3)


def missing(stage: Stage) -> None:
    """Start an application whose topic does not exist."""
    _start(stage, "a", "nowhere")
    stage.wait(6)


def shutdown(stage: Stage) -> None:
    """Let one of two instances ask all to shut down."""
    member = _start(stage, "a")
    stage.wait(5)
    _start(stage, "b")
    stage.wait(6)
    member.tell("shutdown")
    stage.wait(4)


SITUATIONS: Final = (trio, static_close, refused, missing, shutdown)
