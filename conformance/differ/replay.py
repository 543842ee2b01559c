"""Scripts played on a running endpoint again: by the command, and by the tests that it writes."""

from collections.abc import Sequence
from typing import Any

from coordinator_sim.errors import DataError
from coordinator_sim_conformance.differ.comparison import Difference
from coordinator_sim_conformance.differ.explained import Explanation, read_explanations
from coordinator_sim_conformance.differ.live_comparison import TimedScript, expected
from coordinator_sim_conformance.differ.live_loop import Judged, LiveSession
from coordinator_sim_conformance.differ.live_reference import live_reference
from coordinator_sim_conformance.differ.timed_programs import Clearance, paced
from coordinator_sim_conformance.targets.choice import endpoint_at

Json = dict[str, Any]


def difference_at(
    bootstrap: str,
    commands: Sequence[Json],
    profile: str,
    explanations: tuple[Explanation, ...] | None = None,
) -> Difference | None:
    """Play a script on an endpoint and on the simulator; return the first difference, if any.

    Args:
        bootstrap: Addresses, `HOST:PORT` with commas between.
        commands: The script, as JSON lines hold it.
        profile: Kafka that the simulator is.
        explanations: Understood differences; by default those of `explained.toml`.

    Raises:
        DataError: the endpoint does not answer, or this host is too slow.
    """
    endpoint = endpoint_at(bootstrap, None, None)
    known = read_explanations() if explanations is None else explanations
    try:
        session = LiveSession(endpoint, live_reference(endpoint, profile), known)
        return replayed(session, commands).difference
    finally:
        endpoint.clean_up()


def replayed(session: LiveSession, commands: Sequence[Json]) -> Judged:
    """Play a script, and again with everything slower unless both sides agree.

    Raises:
        DataError: a request may be raced by a timer, or this host is too slow.
    """
    script = TimedScript.of(paced(commands, Clearance()))
    clear = expected(script, session.reference.profile, Clearance()).clear
    if clear < len(script.commands):
        call = script.commands[clear]
        raise DataError(
            f"request {call.get('id')} comes within {Clearance().margin_ms} ms of the end of a "
            "timer: in real time either may be first; wait longer before it, or less long"
        )
    judged = session.judged(script)
    if judged.is_late:
        raise DataError("this host is too slow to send the script's requests in time")
    return judged
