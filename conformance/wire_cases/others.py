"""Others at the same broker: what one connection does must not harm them."""

from collections.abc import Iterator
from contextlib import contextmanager

from coordinator_sim_conformance.wire_cases.steps import STABLE, played, prepare
from coordinator_sim_conformance.wire_cases.story import Story


@contextmanager
def others_going_on(story: Story) -> Iterator[None]:
    """Check after the block that a member from before is answered, and a newcomer.

    Raises:
        CaseFailed: one of them is not.
    """
    member = Story(story.reach)
    member.transcript = story.transcript
    try:
        prepare(member, STABLE)
        before = member.link
        yield
        problem = played(member, "Heartbeat", member.known("Heartbeat")[-1])
        if problem or member.link is not before:
            story.fail("a member on another connection", problem)
        member.close()
        problem = played(member, "ApiVersions", 0)
        if problem:
            story.fail("a new connection", problem)
    finally:
        member.close()
