"""Situations of a member of the consumer protocol (KIP-848), played on a `Stage`.

Sessions last 4 s and heartbeats come every 500 ms, by settings of the broker.
"""

from typing import Final

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from tools.record_proxy import Fault
from tools.recording_stage import BROKER, TOPIC, Stage

OTHER_TOPIC: Final = "payments"
CLASSIC_SETTINGS: Final = {
    "group_protocol": "classic",
    "session_timeout_ms": "4000",
    "heartbeat_interval_ms": "500",
    "partition_assignment_strategy": "range",
}
_BEAT: Final = ApiKey.CONSUMER_GROUP_HEARTBEAT


def start(stage: Stage) -> None:
    """Let one member join an empty group, read all records, commit and send heartbeats."""
    stage.start("a")
    stage.wait(6.5)


def rejoin(stage: Stage) -> None:
    """Let a second member join, then leave."""
    stage.start("a")
    stage.wait(3)
    stage.proxy.set_step("joins")
    other = stage.start("b")
    stage.wait(3.5)
    stage.proxy.set_step("leaves")
    other.close()
    stage.wait(2.5)


def trio(stage: Stage) -> None:
    """Let a third member join a group of two, then leave."""
    stage.start("a")
    stage.wait(2)
    stage.start("b")
    stage.wait(3)
    stage.proxy.set_step("joins")
    third = stage.start("c")
    stage.wait(3)
    stage.proxy.set_step("leaves")
    third.close()
    stage.wait(2.5)


def killed(stage: Stage) -> None:
    """Kill a second member, and let its session time out."""
    stage.start("a")
    stage.wait(2)
    other = stage.start("b")
    stage.wait(3)
    stage.proxy.set_step("kill")
    other.kill()
    stage.wait(6.5)


def close(stage: Stage) -> None:
    """Close a dynamic member."""
    member = stage.start("a")
    stage.wait(2.5)
    stage.proxy.set_step("close")
    member.close()


def static_close(stage: Stage) -> None:
    """Close a static member, and start it again within its session."""
    member = stage.start("a", group_instance_id="one")
    stage.wait(2.5)
    stage.proxy.set_step("close")
    member.close()
    stage.proxy.set_step("return")
    stage.start("a", group_instance_id="one")
    stage.wait(3)


def unreleased(stage: Stage) -> None:
    """Start another process of a static member that lives."""
    stage.start("a", group_instance_id="one")
    stage.wait(2.5)
    stage.proxy.set_step("twin")
    twin = stage.start("b", group_instance_id="one")
    stage.wait(2)
    stage.proxy.set_step("close")
    twin.close()
    stage.wait(1)


def slow_poll(stage: Stage) -> None:
    """Stop the application's polls for longer than allowed, with offsets still to be committed."""
    member = stage.start("a", auto_commit_interval_ms="20000")
    stage.wait(2)
    stage.proxy.set_step("slow")
    member.tell("slow 6500")
    stage.wait(9.5)


def slow_callback(stage: Stage) -> None:
    """Let every rebalance callback of the first member take 1.2 s."""
    first = stage.start("a")
    stage.wait(2.5)
    first.tell("callback 1200")
    stage.proxy.set_step("joins")
    other = stage.start("b")
    stage.wait(5)
    stage.proxy.set_step("leaves")
    other.close()
    stage.wait(3.5)


def early_release(stage: Stage) -> None:
    """Refuse a heartbeat while an application is being given partitions that others shall have.

    The next heartbeat tells what the member has acknowledged, which is nothing yet.
    """
    stage.start("a")
    stage.wait(2)
    member = stage.start("b")
    member.tell("callback 2750")
    stage.wait(1)
    stage.proxy.set_step("join")
    stage.start("c")
    stage.start("d")
    stage.wait(0.9)
    stage.fault("b", _BEAT, ErrorCode.NOT_COORDINATOR, "refused")
    stage.wait(5.4)


def frozen(stage: Stage) -> None:
    """Freeze a member with offsets to commit for longer than its session, while another lives."""
    member = stage.start("a")
    stage.wait(1)
    stage.start("b")
    stage.wait(2.2)
    stage.proxy.set_step("frozen")
    member.freeze()
    stage.wait(6.2)
    stage.proxy.set_step("thawed")
    member.thaw()
    stage.wait(4)


def stalled(stage: Stage) -> None:
    """Freeze the broker for a few heartbeats."""
    stage.start("a")
    stage.wait(2.25)
    stage.proxy.set_step("stalled")
    stage.freeze_broker(2.6)
    stage.proxy.set_step("goes-on")
    stage.wait(3)


def coordinator_moved(stage: Stage) -> None:
    """Refuse heartbeats with NOT_COORDINATOR, then cut the connections."""
    stage.start("a")
    stage.wait(2.25)
    stage.fault("a", _BEAT, ErrorCode.NOT_COORDINATOR, "not-coordinator")
    stage.wait(2.5)
    stage.proxy.set_step("cut")
    stage.proxy.cut("a")
    stage.wait(3)


def broker_bounce(stage: Stage) -> None:
    """Stop and restart the only broker."""
    stage.start("a", max_poll_interval_ms="10000")
    stage.wait(2.25)
    stage.proxy.set_step("down")
    stage.proxy.refuse()
    stage.proxy.note(BROKER, "down")
    stage.broker.stop()
    stage.broker.start()
    stage.proxy.accept()
    stage.proxy.note(BROKER, "up")
    stage.proxy.set_step("up")
    stage.wait(8)


def refused(stage: Stage) -> None:
    """Refuse heartbeats of a member in turn: temporarily, for good, and as never foreseen."""
    stage.start("a")
    for error in (
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.FENCED_MEMBER_EPOCH,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    ):
        stage.wait(2.25)
        stage.fault("a", _BEAT, error, error.name.lower())
    stage.wait(3)


def join_refused(stage: Stage) -> None:
    """Answer the first heartbeats with temporary errors."""
    for error in (
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    ):
        stage.proxy.add_fault(Fault("a", _BEAT, error))
    stage.start("a")
    stage.wait(6)


def subscription(stage: Stage) -> None:
    """Subscribe to a second topic too, then to that one alone."""
    member = stage.start("a")
    stage.wait(2.5)
    stage.proxy.set_step("wider")
    member.tell(f"subscribe {TOPIC} {OTHER_TOPIC}")
    stage.wait(3)
    stage.proxy.set_step("other")
    member.tell(f"subscribe {OTHER_TOPIC}")
    stage.wait(3)


def regex(stage: Stage) -> None:
    """Subscribe by an expression."""
    member = stage.start("a", f"^{TOPIC[:3]}.*")
    stage.wait(3)
    stage.proxy.set_step("close")
    member.close()


def manual_commit(stage: Stage) -> None:
    """Commit by the application, and lose partitions without a commit."""
    member = stage.start("a", enable_auto_commit="false")
    stage.wait(2.5)
    stage.proxy.set_step("commit")
    member.tell("commit")
    stage.wait(1)
    stage.proxy.set_step("joins")
    stage.start("b", enable_auto_commit="false")
    stage.wait(3)
    member.tell("commit")
    stage.wait(1)


def upgrade(stage: Stage) -> None:
    """Let a member of the consumer protocol join a classic group, and the classic one return so."""
    classic = stage.start("a", **CLASSIC_SETTINGS)
    stage.wait(3)
    stage.proxy.set_step("joins")
    stage.start("b")
    stage.wait(4)
    stage.proxy.set_step("leaves")
    classic.close()
    stage.proxy.set_step("returns")
    stage.start("a")
    stage.wait(4)


def upgrade_sticky(stage: Stage) -> None:
    """Let a member of the consumer protocol join a classic group of cooperative-sticky members."""
    sticky = {**CLASSIC_SETTINGS, "partition_assignment_strategy": "cooperative-sticky"}
    stage.start("a", **sticky)
    stage.wait(2.5)
    stage.start("c", **sticky)
    stage.wait(5)
    stage.proxy.set_step("joins")
    stage.start("b")
    stage.wait(2.5)


SITUATIONS: Final = (
    start,
    rejoin,
    trio,
    killed,
    close,
    static_close,
    unreleased,
    slow_poll,
    slow_callback,
    early_release,
    frozen,
    stalled,
    coordinator_moved,
    refused,
    join_refused,
    subscription,
    regex,
    manual_commit,
    upgrade,
    upgrade_sticky,
    broker_bounce,
)
