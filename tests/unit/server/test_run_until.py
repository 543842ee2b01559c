"""A virtual clock that runs until a condition holds."""

import asyncio

import pytest

from coordinator_sim.server.timekeeper import Timekeeper, VirtualClock
from tests.unit.server.test_clocks import START_MS, Deadlines, Endless, Hand
from tests.unit.server.test_control import Running, coordinated, options, play

STABLE = {"group_id": "app", "state": "Stable"}


class Fired:
    """A condition: so many deadlines of a cluster fired; each of them is news to clients."""

    def __init__(self, cluster: Deadlines, count: int) -> None:
        self._cluster = cluster
        self._count = count

    def is_met(self) -> bool:
        """Whether so many fired."""
        return len(self._cluster.fired) >= self._count

    def told(self) -> int:
        """How many fired."""
        return len(self._cluster.fired)


@pytest.mark.parametrize(
    ("count", "within_ms", "stands_at_ms"),
    [(0, 60, 0), (1, 60, 3), (2, 60, 5), (3, 60, 20), (3, 10, 10), (4, 60, 60), (4, 0, 0)],
)
def test_clock_stands_where_the_condition_came_true_or_at_its_bound(
    count: int, within_ms: int, stands_at_ms: int
) -> None:
    """Deadlines behind that instant have not fired."""
    cluster = Deadlines([START_MS + at_ms for at_ms in (3, 5, 20)], [])

    async def story() -> None:
        keeper = Timekeeper(cluster, VirtualClock(Hand()), quiet_ms=1)
        assert await keeper.run_until_met(Fired(cluster, count), within_ms)
        assert keeper.clock.now().group_ms == START_MS + stands_at_ms
        assert all(at_ms <= START_MS + stands_at_ms for _, at_ms in cluster.fired)
        assert keeper.under_way is None
        keeper.stop()

    asyncio.run(story())


def test_move_towards_a_condition_that_never_comes_is_called_off() -> None:
    """The loop has its turns meanwhile."""
    cluster = Endless()

    async def story() -> None:
        keeper = Timekeeper(cluster, VirtualClock(Hand()), quiet_ms=1)
        moving = asyncio.create_task(keeper.run_until_met(Fired(cluster, 1), 10**11))
        await asyncio.sleep(0.05)
        assert keeper.under_way is not None
        assert keeper.call_off()
        assert not await moving
        keeper.stop()

    asyncio.run(story())


async def run_until(server: Running, status: int = 200, **body: object) -> dict[str, object]:
    """The answer to one move."""
    moved = await server.call("POST", "/v1/clock/run-until", body, status=status)
    assert isinstance(moved, dict)
    return moved


def test_clients_react_before_the_clock_goes_on() -> None:
    """The end of the other's session completes a JoinGroup, whose SyncGroup is waited for."""

    async def story(server: Running) -> None:
        client = await coordinated(server, "app")
        member_id = await client.join("app")
        other = await coordinated(server, "app")
        joining = asyncio.create_task(other.join("app", session_timeout_ms=30_000))
        await server.get("/v1/groups/app/wait?state=PreparingRebalance")
        moved = await run_until(server, group={**STABLE, "members": 1, "min_generation": 2})
        assert (moved["is_met"], moved["is_there"]) == (True, True)
        assert moved["found"] == "group 'app' is Stable in generation 2 with 1 members"
        assert await joining != member_id
        for each in (client, other):
            await each.close()

    play(story, options(clock="virtual"))


def test_bound_that_comes_first_ends_the_move_there() -> None:
    """The answer says that the condition is not met, and how its group is."""

    async def story(server: Running) -> None:
        before = await server.get("/v1/clock")
        assert isinstance(before, dict)
        moved = await run_until(server, group=STABLE, within_ms=1_234)
        assert (moved["is_met"], moved["found"]) == (False, "there is no group 'app'")
        clock = moved["clock"]
        assert isinstance(clock, dict)
        assert clock["group_ms"] == before["group_ms"] + 1_234

    play(story, options(clock="virtual"))


def test_hits_of_a_rule_are_a_condition() -> None:
    """The end of a session lets the clock stand still, and the client's next beat is the hit."""

    async def story(server: Running) -> None:
        client = await coordinated(server, "app")
        member_id = await client.join("app")
        await server.call(
            "POST",
            "/v1/faults",
            {"action": {"do": "error", "error": "NOT_COORDINATOR"}, "times": 1},
            status=201,
        )
        moving = asyncio.create_task(run_until(server, fault={"fault_id": 1}))
        await server.get("/v1/groups/app/wait?state=Empty")
        await client.beat("app", member_id)
        moved = await moving
        assert (moved["is_met"], moved["found"]) == (True, "fault rule 1 acted 1 times")
        refused = await run_until(server, 409, fault={"fault_id": 1, "hits": 2})
        assert "acts at most 1 times" in str(refused["error"])
        await run_until(server, 404, fault={"fault_id": 9})
        await client.close()

    play(story, options(clock="virtual"))


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ({}, "wants one of group_ms, group and fault, not 0"),
        ({"group_ms": 1, "group": STABLE}, "not 2"),
        ({"group_ms": 1, "within_ms": 5}, "within_ms bounds a condition"),
        ({"group": {"group_id": "app"}}, "wants a state, members, generation or min_generation"),
        ({"group": {**STABLE, "state": "Happy"}}, "wants one of Empty, PreparingRebalance"),
        ({"group": {**STABLE, "members": -1}}, "Expected `int` >= 0"),
        ({"fault": {"fault_id": 1, "hits": 0}}, "Expected `int` >= 1"),
    ],
)
def test_condition_that_is_none_is_refused(body: dict[str, object], reason: str) -> None:
    """One line says what is wrong, and the clock stays."""

    async def story(server: Running) -> None:
        refused = await run_until(server, 400, **body)
        assert reason in str(refused["error"])

    play(story, options(clock="virtual"))
