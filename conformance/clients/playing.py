"""Plays cases on real clients, several side by side, each in a group of its own."""

import asyncio
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from coordinator_sim.broker.settings import ClusterSettings
from coordinator_sim.coordinator.contract import CoordinatorConfig
from coordinator_sim.errors import CoordinatorSimError
from coordinator_sim.server.kafka_server import KafkaServer, Listen
from coordinator_sim.server.timekeeper import parse_clock
from coordinator_sim_conformance.client_cases.case import CLIENTS
from coordinator_sim_conformance.clients.case import WireCase
from coordinator_sim_conformance.clients.driver import Hello, Program
from coordinator_sim_conformance.clients.stage import Stage
from coordinator_sim_conformance.clients.wire import Recorder
from coordinator_sim_conformance.frames import Frame
from coordinator_sim_conformance.running import Ending, Verdict
from coordinator_sim_conformance.script.stage import BREAKS, CaseBroken, CaseFailed
from coordinator_sim_conformance.targets.target import Unsupported

MARGINS: Final = (1, 2)
"""Factors of times: a case that does not pass is played again, with twice as much of them."""
SIDE_BY_SIDE: Final = 6
"""Cases at a time, unless a run says otherwise."""
_BROKERS: Final = (1, 2, 3)
_HOST: Final = "127.0.0.1"
_CONFIG: Final = CoordinatorConfig(
    group_initial_rebalance_delay_ms=0, group_min_session_timeout_ms=1_000
)


class Played(Struct, frozen=True):
    """How the cases of a client ended.

    Args:
        hello: What its driver said of it; empty for a program that is no driver.
        endings: How each case ended, in the order of the cases.
    """

    hello: Hello
    endings: tuple[Ending, ...]


async def play_wire_cases(
    cases: Sequence[WireCase],
    program: Program,
    *,
    side_by_side: int = SIDE_BY_SIDE,
    told: Callable[[Ending], None] = lambda _: None,
) -> Played:
    """Play cases on a client.

    Args:
        cases: What to play.
        program: The client.
        side_by_side: Cases at a time.
        told: Called with each ending, as they come.
    """
    loop = asyncio.get_running_loop()
    server = KafkaServer(
        ClusterSettings(broker_ids=_BROKERS, coordinator=_CONFIG), parse_clock("wall", loop.time)
    )
    recorder = Recorder()
    server.tap = recorder
    await server.start([Listen(broker_id=each, host=_HOST, port=0) for each in _BROKERS])
    free = asyncio.Semaphore(side_by_side)
    hellos: list[Hello] = []

    async def play(case: WireCase, folder: Path) -> Ending:
        async with free:
            for margins in MARGINS:
                name = f"{case.case_id.lower().replace('.', '-')}-x{margins}"
                stage = Stage(server, recorder, program, name=name, margins=margins, folder=folder)
                ending = await _ended(case, stage)
                hellos.extend(driver.hello for driver in stage.drivers if driver.hello)
                if ending.verdict in {Verdict.PASSED, Verdict.SKIPPED}:
                    break
        told(ending)
        return ending

    with tempfile.TemporaryDirectory(prefix="clients-") as folder:
        try:
            endings = await asyncio.gather(*(play(case, Path(folder)) for case in cases))
        finally:
            await server.stop()
    return Played(next(iter(hellos), Hello()), tuple(endings))


async def _ended(case: WireCase, stage: Stage) -> Ending:
    """Play a case; exceptions become its ending."""
    verdict, reason, expectation, came = Verdict.PASSED, "", "", ""
    began_s = time.monotonic()
    try:
        await case.play(stage)
    except CaseFailed as failed:
        verdict = Verdict.UNKNOWN if isinstance(failed, CaseBroken) else Verdict.FAILED
        reason, expectation, came = failed.problem, failed.line, failed.came
    except Unsupported as lacking:
        verdict, reason = Verdict.SKIPPED, str(lacking)
    except (CoordinatorSimError, *BREAKS) as broken:
        verdict, reason = Verdict.UNKNOWN, f"{type(broken).__name__}: {broken}"
    finally:
        transcript = stage.transcript()
        await stage.close()
    return Ending(
        case_id=case.case_id,
        area=case.requirement.area,
        profile=CLIENTS,
        verdict=verdict,
        title=case.requirement.title,
        level=case.requirement.level,
        is_quirk=case.requirement.is_quirk,
        sources=case.requirement.sources,
        reason=reason,
        expectation=expectation,
        came=came,
        transcript=transcript,
        frames=_frames(stage) if verdict in {Verdict.FAILED, Verdict.UNKNOWN} else (),
        margins=stage.margins,
        timing=verdict is Verdict.FAILED and stage.failed_on_time,
        elapsed_s=round(time.monotonic() - began_s, 3),
    )


def _frames(stage: Stage) -> tuple[Frame, ...]:
    return tuple(frame for each in stage.all() for frame in each.evidence(stage.began_ms))
