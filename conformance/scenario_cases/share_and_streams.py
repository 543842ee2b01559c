"""Share groups and Kafka Streams applications: records, tasks, and the time without a task."""

from coordinator_sim.trace.events import Event
from coordinator_sim_conformance.scenario_cases.case import shows
from coordinator_sim_conformance.scenario_cases.seen import Seen

AT_ONCE_MS = 1_000
RESTORE_MS = 10_000
"""Time in which a store of 500 MB is read from its changelog."""


def _without_ms(seen: Seen, after_ms: int = 60_000) -> list[int]:
    """Return the times in which tasks had no owner that processed them, by later starts."""
    started = seen.of(Event.TASKS_STARTED, after_ms=after_ms)
    return [int(each.attrs["without_ms"]) for each in started if "without_ms" in each.attrs]


@shows("share-poison")
def poison_is_delivered_up_to_the_limit_and_holds_nothing_up(seen: Seen) -> None:
    """Five times each; the records behind it are accepted meanwhile, up to the last second."""
    delivered = seen.of(Event.RECORDS_DELIVERED)
    seen.expect("deliveries", max(int(each.attrs["deliveries"]) for each in delivered), 5)
    accepted = [e for e in seen.of(Event.RECORDS_ACKNOWLEDGED) if e.attrs["type"] == "accept"]
    seen.expect("accepted last", max(each.position or 0 for each in accepted), 2_980)


@shows("share-scale-out")
def members_beyond_the_partitions_get_records_too(seen: Seen) -> None:
    """Six members share one partition after the scale-out, and none gives it up."""
    late = seen.of(Event.RECORDS_DELIVERED, after_ms=60_000)
    seen.expect("members with records", len({each.client_id for each in late}), 6)


@shows("streams-deploy")
def stateless_tasks_move_at_once_and_stateful_ones_restore(seen: Seen) -> None:
    """A task whose new owner lacks its state waits for the state, others for a heartbeat."""
    without_ms = _without_ms(seen)
    seen.expect("moved at once", sum(each < AT_ONCE_MS for each in without_ms), 3)
    seen.expect("restored first", sum(each >= RESTORE_MS for each in without_ms), 8)


@shows("streams-lost-disk")
def instance_without_its_disk_restores_all_that_it_gets(seen: Seen) -> None:
    """Four tasks more restore than in a deploy in which the disks are found again."""
    seen.expect("restored first", sum(each >= RESTORE_MS for each in _without_ms(seen)), 12)


@shows("streams-scale-out")
def new_instances_take_tasks_over(seen: Seen) -> None:
    """Each of the two that join processes tasks in the end."""
    late = seen.of(Event.TASKS_STARTED, after_ms=60_000)
    owners = {each.client_id for each in late}
    seen.expect("new owners", owners, {"streams-4", "streams-5"})
