"""`Variety`: distributions by which the worlds of a scenario differ from its exact one.

An exact world is in lockstep: all members start at one instant, process equally long and send their
heartbeats together, so a rebalance finds all of them at once and seems to cost nothing. No cluster
is like that. A scenario with a variety is many worlds, one for each seed. Plain data and its
checks; `variants.realised` draws, and `coordinator_sim.sim` draws what recurs during a run.

Every table below lists quantiles (`quantiles`). None of them was measured on a cluster of ours:
each states what it rests on, and each can be replaced in a scenario's JSON.
"""

from typing import Final

from msgspec import Struct

from coordinator_sim.errors import ScenarioError
from coordinator_sim.sim.scenario.quantiles import check_table
from coordinator_sim.sim.scenario.work import SHAPES, Shape
from coordinator_sim.sim.scenario.world import LatencyLaw, TableLatency

_DAY_MS: Final = 86_400_000
"""Longest spread, pause or start: a world beyond it tells nothing about rebalances."""
_LONGEST_TYPICAL_MS: Final = 90_000
"""The longest draw of every shape, 40 times this, is an hour: the bound of one poll's work."""
_LARGEST_PERCENT: Final = 10_000

DOWN_PERCENT: Final = (60, 80, 90, 100, 110, 130, 200)
"""Down times relative to the scenario's. Assumption: a process usually needs its usual time to
come back, now and then twice as long, because an image is pulled or a disk is cold."""
PAUSE_GAP_MS: Final = (1_000, 3_000, 6_000, 10_000, 15_000, 25_000, 60_000)
"""From one garbage collection that is felt to the next, of one process. Assumption: young
collections of a busy JVM come every few seconds to every minute."""
PAUSE_MS: Final = (*range(10, 200, 5), 200, 500, 4_000)
"""Lengths of collections at steps of 2.5 %. G1 aims at pauses of at most 200 ms
(`MaxGCPauseMillis`, its default), so most are below. Assumption: one in forty is a collection of
the whole heap, of half a second to four seconds."""
START_CONNECTOR_MS: Final = (50, 100, 200, 300, 500, 1_000, 3_000)
"""Assumption: a connector's `start` reads its configuration and perhaps asks its system once."""
START_TASK_MS: Final = (100, 200, 300, 500, 800, 1_500, 5_000)
"""Assumption: a task creates its Kafka clients and connects to its system; a login or a scan of a
schema takes seconds."""
STOP_CONNECTOR_MS: Final = (5, 10, 20, 50, 100, 200, 1_000)
"""Assumption: a connector's `stop` ends a monitoring thread."""
STOP_TASK_MS: Final = (20, 50, 100, 150, 200, 300, 500, 800, 1_200, 2_000, 5_500)
"""Assumption: a task finishes the batch in hand, flushes, commits and closes its clients. The
slowest 1.4 % take longer than the default of `task.shutdown.graceful.timeout.ms`, 5 s, and are
cancelled."""


class Variety(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Distributions drawn for each world. The same seed draws the same under every assignor.

    A draw is named by its purpose and by the member, connector or task, so two assignors meet the
    same starts, pauses and times, and a new kind of draw disturbs no other.

    Args:
        start_spread_ms: Members that start at 0 start within this many milliseconds. The default,
            20 s, is an assumption: an orchestrator starts the members of a group within seconds
            to a minute.
        happening_spread_ms: Largest delay of every happening and every later start; the happenings
            of one member keep their order. The default, 2 s, is an assumption: a deploy is not
            exact to the millisecond.
        down_percent: Quantiles by which down times are scaled, in percent.
        processing: Distribution of the time from one poll to the next (`SHAPES`). The default,
            `steady`, is the case with the least to gain from cooperative rebalancing: a slow poll
            holds up all other members of an eager group.
        processing_ms: The shortest and the longest typical time; each member's is drawn evenly
            between them. The default, 100 to 1,500 ms, is an assumption. Members that the scenario
            gives a `processing`, or a `processing_ms` other than its default, keep theirs.
        latency: Latency law of the network, unless the scenario differs from the default.
        calm_ms: Time of a stable group that is lived through after a happening, and before the
            next; what lies between is left out (`coordinator_sim.sim.calm`). 0 leaves nothing out.
        pause_gap_ms: Quantiles from the end of one garbage collection to the next, per process.
        pause_ms: Quantiles of a collection's length, which freezes the process; empty for none.
        start_connector_ms: Quantiles of the time that starting a connector takes.
        start_task_ms: Quantiles of starting a task; work with another `start_ms` keeps it.
        stop_connector_ms: Quantiles of the time that stopping a connector takes.
        stop_task_ms: Quantiles of stopping a task; work with another `stop_ms` keeps it.
    """

    start_spread_ms: int = 20_000
    happening_spread_ms: int = 2_000
    down_percent: tuple[int, ...] = DOWN_PERCENT
    processing: Shape = "steady"
    processing_ms: tuple[int, int] = (100, 1_500)
    latency: LatencyLaw = TableLatency()
    calm_ms: int = 0
    pause_gap_ms: tuple[int, ...] = PAUSE_GAP_MS
    pause_ms: tuple[int, ...] = PAUSE_MS
    start_connector_ms: tuple[int, ...] = START_CONNECTOR_MS
    start_task_ms: tuple[int, ...] = START_TASK_MS
    stop_connector_ms: tuple[int, ...] = STOP_CONNECTOR_MS
    stop_task_ms: tuple[int, ...] = STOP_TASK_MS


def check_variety(variety: Variety) -> None:
    """Refuse a variety that cannot be drawn; its latency is checked with the network.

    Raises:
        ScenarioError: names the field, the value, the bound and the fix.
    """
    for name in ("start_spread_ms", "happening_spread_ms", "calm_ms"):
        value = getattr(variety, name)
        if not 0 <= value <= _DAY_MS:
            raise ScenarioError(f"variety.{name}={value}: must be from 0 to {_DAY_MS}")
    if variety.processing not in SHAPES:
        raise ScenarioError(
            f"variety.processing={variety.processing!r}: must be one of {', '.join(SHAPES)}"
        )
    check_table("variety.processing_ms", variety.processing_ms, 1, _LONGEST_TYPICAL_MS)
    check_table("variety.down_percent", variety.down_percent, 0, _LARGEST_PERCENT)
    if variety.pause_ms:
        check_table("variety.pause_ms", variety.pause_ms, 1, _DAY_MS)
        check_table("variety.pause_gap_ms", variety.pause_gap_ms, 1, _DAY_MS)
    for name in ("start_connector_ms", "start_task_ms", "stop_connector_ms", "stop_task_ms"):
        check_table(f"variety.{name}", getattr(variety, name), 0, _DAY_MS)
