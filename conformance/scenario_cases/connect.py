"""Connect clusters that grow, shrink, are reconfigured and upgraded without failures."""

from coordinator_sim.trace.events import Event
from coordinator_sim_conformance.scenario_cases.case import shows
from coordinator_sim_conformance.scenario_cases.seen import Seen


def spread(loads: dict[str, int]) -> int:
    """Return the difference between the most and the least loaded worker."""
    return max(loads.values()) - min(loads.values())


def _loads_at_end(seen: Seen, *, tasks: bool) -> dict[str, int]:
    """Return the number of connectors or tasks of each worker of the last generation at the end."""
    loads = dict.fromkeys(seen.rounds[-1].told, 0)
    for resource, workers in seen.running_at_end().items():
        if resource.startswith("t:") is tasks:
            for worker in workers:
                loads[worker] += 1
    return loads


def expect_even(seen: Seen) -> None:
    """Check that at the end everything runs once, and loads of a kind differ by at most one."""
    seen.expect("run twice at the end", [], [w for w in seen.running_at_end().values() if w[1:]])
    for tasks in (False, True):
        loads = _loads_at_end(seen, tasks=tasks)
        seen.expect_that("even loads at the end", spread(loads) <= 1, loads)


@shows("connector-added")
def added_connector_stops_no_work(seen: Seen) -> None:
    """A new connector and its tasks are dealt out, and nothing is revoked from anyone."""
    rounds = seen.rounds_after(40_000)
    seen.expect(
        "revoked", [one.revoked(w) for one in rounds for w in one.told if one.revoked(w)], []
    )
    added = sorted(name for one in rounds for worker in one.told for name in one.added(worker))
    seen.expect("added", len(added), 7)
    seen.expect("stopped", seen.of(Event.TASKS_STOPPED), [])


@shows("connect-rolling-deploy")
def deploy_moves_nothing_twice(seen: Seen) -> None:
    """Each restart fits into the scheduled delay; nothing ever runs on two workers."""
    seen.expect("run twice", seen.run_twice(), [])
    expect_even(seen)


@shows("connect-worker-bounce")
def bounced_worker_gets_its_work_back(seen: Seen) -> None:
    """Each restarted worker is assigned its earlier work; the other workers stop nothing."""
    seen.expect("run twice", seen.run_twice(), [])
    expect_even(seen)


@shows("connect-several-joiners")
def several_joiners_are_served_within_two_generations(seen: Seen) -> None:
    """Three newcomers at once: one generation revokes, the next one assigns, and all is even."""
    rounds = seen.rounds_after(60_000)
    seen.expect("generations", len(rounds), 2)
    seen.expect_that("work revoked at first", any(rounds[0].revoked(w) for w in rounds[0].told))
    seen.expect("revoked at last", [w for w in rounds[1].told if rounds[1].revoked(w)], [])
    expect_even(seen)


@shows("connect-join-storm")
def storm_of_joiners_ends_even(seen: Seen) -> None:
    """Revoking rounds are spaced by growing delays, are few, and end with even loads."""
    rounds = seen.rounds_after(60_000)
    delays = [one.delay_ms for one in rounds if one.delay_ms]
    seen.expect("delays", delays, [40, 1_600, 64_000])
    seen.expect_between("generations", len(rounds), 5, 10)
    seen.expect("run twice", seen.run_twice(), [])
    expect_even(seen)


@shows("connect-eager-round-robin")
def eager_work_is_dealt_out_by_kind(seen: Seen) -> None:
    """Connectors differ by one at most in every generation, and so do tasks; all is stopped."""
    for one in seen.rounds:
        for kind in ("connectors", "tasks"):
            loads = {worker: len(getattr(told, kind)) for worker, told in one.told.items()}
            seen.expect_that(f"even {kind} in {one.generation}", spread(loads) <= 1, loads)
    stopped = [run for run in seen.runs if run.end_ms is not None and run.resource == "t:a-large-0"]
    seen.expect("times that a task was stopped", len(stopped), seen.completed(after_ms=40_000))
    seen.expect("run twice", seen.run_twice(), [])


@shows("connect-config-burst")
def burst_of_connectors_ends_with_all_running(seen: Seen) -> None:
    """Workers past their assignment start nothing of it yet; in the end everything runs once."""
    seen.expect("run twice", seen.run_twice(), [])
    seen.expect("running at the end", len(seen.running_at_end()), 12)
    expect_even(seen)


@shows("connect-eager-to-sessioned-upgrade")
def cluster_speaks_what_all_workers_know(seen: Seen) -> None:
    """The protocol of each generation, and delays only where it is an incremental one."""
    protocols = [one.protocol for one in seen.rounds]
    wanted = [*["default"] * 8, "sessioned", *["compatible"] * 2, *["sessioned"] * 4]
    seen.expect("protocols", protocols, wanted)
    delayed = [one.protocol for one in seen.rounds if one.delay_ms]
    seen.expect("protocols of delayed generations", delayed, ["sessioned"])


@shows("connect-startup-30-million")
def start_reads_all_offsets_before_it_joins(seen: Seen) -> None:
    """The one worker joins when it has read all 30 million records, after nearly three minutes."""
    (read,) = [e for e in seen.of(Event.LIFECYCLE) if e.attrs.get("records") == "30000000"]
    read_ms = read.ts_us // 1_000
    seen.expect_between("read to its end", read_ms, 120_000, 200_000)
    (added,) = seen.of(Event.MEMBER_ADDED)
    seen.expect_between("joined after it", added.ts_us // 1_000 - read_ms, 0, 1_000)
    expect_even(seen)


@shows("connect-startup-large-offsets")
def bounce_is_as_long_as_the_offset_topic(seen: Seen) -> None:
    """A worker is away for two minutes, and has its work back when the delay is over."""
    (joined,) = seen.of(Event.MEMBER_ADDED, after_ms=205_000)
    seen.expect_between("back in the group", joined.ts_us // 1_000, 320_000, 330_000)
    seen.expect("delayed generations", len([r for r in seen.rounds if r.delay_ms]), 2)
    (started,) = seen.of(Event.TASKS_STARTED, after_ms=205_000)
    seen.expect_between("work back", started.ts_us // 1_000, 502_000, 503_000)
    expect_even(seen)


@shows("connect-rest")
def rest_operates_the_cluster(seen: Seen) -> None:
    """Requests are forwarded to who can do them; a pause is no rebalance, a stop is one."""
    told = [each for each in seen.of(Event.LIFECYCLE) if "method" in (each.attrs or {})]
    answers = [(each.reason_text or "").split()[-1] for each in told]
    wanted = [404, 200, 201, 409, 200, 202, 202, 204, 202, 400, 409, 204, 200, 204]
    seen.expect("answers", answers, [*map(str, wanted), "refused"])
    seen.expect("generations of the pause", seen.completed(40_000, 60_000), 0)
    seen.expect("generations of the stop", seen.completed(70_000, 80_000), 2)
    seen.expect("run at the end", sorted(seen.running_at_end()), ["c:archive", "t:archive-0"])
