"""The clocks of a served cluster."""

import asyncio
import time

import pytest

from coordinator_sim.broker.contract import Instants
from coordinator_sim.errors import ConfigError
from coordinator_sim.server import timekeeper
from coordinator_sim.server.timekeeper import FARTHEST_MS, Timekeeper

START_MS = 1_700_000_000_000


class Hand:
    """A wall clock moved by hand."""

    def __init__(self) -> None:
        self.now_ms = START_MS

    def __call__(self) -> int:
        """What it shows."""
        return self.now_ms


class Deadlines:
    """A cluster that has nothing but deadlines."""

    def __init__(self, group: list[int], wall: list[int]) -> None:
        self.group = sorted(group)
        self.wall = sorted(wall)
        self.fired: list[tuple[str, int]] = []
        self.is_over = asyncio.Event()

    def expire(self, now: Instants) -> None:
        """Take down what is due, and the instant on the clock it is of."""
        while self.group and self.group[0] <= now.group_ms:
            self.fired.append(("group", self.group.pop(0)))
        while self.wall and self.wall[0] <= now.wall_ms:
            self.fired.append(("wall", self.wall.pop(0)))
        if not self.group and not self.wall:
            self.is_over.set()

    def next_group_deadline_ms(self) -> int | None:
        """The first one."""
        return self.group[0] if self.group else None

    def exact_group_deadline_ms(self) -> int | None:
        """The same."""
        return self.next_group_deadline_ms()

    def next_wall_deadline_ms(self) -> int | None:
        """The first one."""
        return self.wall[0] if self.wall else None


def test_scaled_clock_runs_by_its_factor() -> None:
    """Group time passes ten times as fast, and deadlines come true when it has passed."""
    hand = Hand()
    clock = timekeeper.ScaledClock(hand, 10)
    hand.now_ms += 7
    assert clock.now() == Instants(START_MS + 70, START_MS + 7)
    assert clock.wall_until_group_ms(START_MS + 71, clock.now()) == 1


@pytest.mark.parametrize("factor", [0.3, 1, 7, 33.3])
def test_alarm_of_scaled_clock_never_rings_early(factor: float) -> None:
    """When the alarm of a deadline rings, group time has reached it, and not long before."""
    hand = Hand()
    clock = timekeeper.ScaledClock(hand, factor)
    for passed_ms in range(0, 2_000, 17):
        delay_ms = clock.wall_until_group_ms(START_MS + passed_ms, Instants(0, START_MS))
        assert delay_ms is not None
        hand.now_ms = START_MS + delay_ms
        assert clock.now().group_ms >= START_MS + passed_ms
        hand.now_ms -= 1
        assert passed_ms == 0 or clock.now().group_ms < START_MS + passed_ms


def test_short_session_on_fast_clock_names_the_largest_safe_factor() -> None:
    """A session of 10 s is safe at five times the speed and no faster."""
    assert timekeeper.ScaledClock(Hand(), 5).session_warning("g", 10_000) is None
    warning = timekeeper.ScaledClock(Hand(), 20).session_warning("g", 10_000)
    assert warning is not None
    assert warning.endswith("lasts 500 ms on a clock scaled by 20; the largest safe factor is 5")


def test_virtual_clock_stands_still() -> None:
    """Wall time passes, group time does not, and a deadline in the future never comes by itself."""
    hand = Hand()
    clock = timekeeper.VirtualClock(hand)
    hand.now_ms += 5_000
    assert clock.now() == Instants(START_MS, START_MS + 5_000)
    assert clock.wall_until_group_ms(START_MS + 1, clock.now()) is None
    assert clock.wall_until_group_ms(START_MS, clock.now()) == 0


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("wall", "wall"),
        ("scaled 2.5", "scaled 2.5"),
        ("scaled:10", "scaled 10"),
        ("virtual", "virtual"),
        ("virtual auto", "virtual auto"),
    ],
)
def test_clock_of_the_command_line_is_named_as_there(text: str, name: str) -> None:
    """A clock is called what made it."""
    assert timekeeper.parse_clock(text).name == name


@pytest.mark.parametrize(
    "text",
    [
        *("", "sundial", "scaled", "scaled x", "scaled 0", "scaled inf", "scaled nan", "scaled -1"),
        *("scaled 1e308", "scaled 1000001", "scaled 0.0009", f"scaled {'9' * 5_000}"),
    ],
)
def test_unknown_clock_is_refused(text: str) -> None:
    """What is no clock is said to be none."""
    with pytest.raises(ConfigError, match="clock") as refused:
        timekeeper.parse_clock(text)
    assert "wants" in str(refused.value)


@pytest.mark.parametrize("factor", [timekeeper.SLOWEST, timekeeper.FASTEST])
@pytest.mark.parametrize("wall_ms", [0, 1, 10**15])
def test_scaled_clock_never_leaves_the_calendar(factor: float, wall_ms: int) -> None:
    """However long it runs it stands still at the end, and a later deadline never comes."""
    hand = Hand()
    clock = timekeeper.ScaledClock(hand, factor)
    hand.now_ms += wall_ms
    now = clock.now()
    assert START_MS <= now.group_ms <= timekeeper.END_MS
    assert clock.wall_until_group_ms(2**63 - 1, now) is None
    assert clock.wall_until_group_ms(timekeeper.END_MS, now) is not None
    clock.move_to(timekeeper.END_MS)
    assert clock.now().group_ms == timekeeper.END_MS


def test_steady_wall_shows_the_time_of_day() -> None:
    """The clock's reading never goes back."""
    wall = timekeeper.steady_wall()
    first = wall()
    assert wall() >= first > START_MS


async def _advance(*, by_ms: int) -> Deadlines:
    cluster = Deadlines([START_MS + 5, START_MS + 3, START_MS + 20], [])
    keeper = Timekeeper(cluster, timekeeper.VirtualClock(Hand()))
    assert await keeper.advance(by_ms)
    keeper.stop()
    return cluster


def test_advance_fires_deadlines_in_order() -> None:
    """Everything due on the way fires, each at its own instant; what is due later does not."""
    cluster = asyncio.run(_advance(by_ms=10))
    assert cluster.fired == [("group", START_MS + 3), ("group", START_MS + 5)]


def test_wall_clock_cannot_be_advanced() -> None:
    """Only a virtual clock moves by hand."""

    async def story() -> None:
        on_wall = Timekeeper(Deadlines([], []), timekeeper.WallClock(time.monotonic))
        with pytest.raises(ConfigError, match="only a virtual one"):
            await on_wall.advance(1)
        virtual = Timekeeper(Deadlines([], []), timekeeper.VirtualClock(Hand()))
        with pytest.raises(ConfigError, match="cannot go back"):
            await virtual.advance(-1)
        virtual.stop()

    asyncio.run(story())


class Endless(Deadlines):
    """A cluster that always has a deadline in the next millisecond, as a group that never rests."""

    def __init__(self) -> None:
        super().__init__([], [])
        self.now_ms = START_MS

    def expire(self, now: Instants) -> None:
        """Have the next one."""
        self.now_ms = now.group_ms

    def next_group_deadline_ms(self) -> int | None:
        """The next millisecond."""
        return self.now_ms + 1


def test_advance_without_end_leaves_turns_and_is_called_off() -> None:
    """Others go on meanwhile, a second advance is refused, and the clock stays where it is."""

    async def story() -> None:
        clock = timekeeper.VirtualClock(Hand())
        keeper = Timekeeper(Endless(), clock)
        advance = asyncio.create_task(keeper.advance(10**11))
        await asyncio.sleep(0)
        for _ in range(3):
            before_ms = clock.now().group_ms
            await asyncio.sleep(0)
            assert clock.now().group_ms > before_ms
        under_way = keeper.under_way
        assert under_way is not None
        assert (under_way.from_ms, under_way.target_ms) == (START_MS, START_MS + 10**11)
        for second in (keeper.advance(1), keeper.run_until(clock.now().group_ms)):
            with pytest.raises(ConfigError, match=r"is under way, at \d+: wait .* ctl clock stop"):
                await second
        with pytest.raises(ConfigError, match="is under way"):
            keeper.set_clock(timekeeper.parse_clock("wall"))
        assert keeper.call_off()
        assert not await advance
        assert keeper.under_way is None
        assert START_MS < clock.now().group_ms < START_MS + 10**11
        assert not keeper.call_off()
        keeper.stop()

    asyncio.run(asyncio.wait_for(story(), 20))


@pytest.mark.parametrize(
    ("from_ms", "to_ms", "reason"),
    [
        (START_MS, START_MS + FARTHEST_MS + 1, "ten years, at a time"),
        (timekeeper.LATEST_MS - 1, timekeeper.LATEST_MS + 1, "the year 3000, is the latest"),
        (START_MS, 10**4_000, "ten years, at a time"),
    ],
)
def test_clock_is_not_moved_out_of_bounds(from_ms: int, to_ms: int, reason: str) -> None:
    """A refused move leaves the clock as it was, and it may still move up to the bound."""

    async def story() -> None:
        clock = timekeeper.VirtualClock(Hand())
        clock.move_to(from_ms)
        keeper = Timekeeper(Deadlines([], []), clock)
        with pytest.raises(ConfigError, match=reason):
            await keeper.run_until(to_ms)
        assert clock.now().group_ms == from_ms
        assert await keeper.run_until(min(from_ms + FARTHEST_MS, timekeeper.LATEST_MS))
        keeper.stop()

    asyncio.run(story())


def test_trouble_of_a_broken_clock_is_told() -> None:
    """A clock that cannot be read is no well cluster's."""

    def broken() -> int:
        raise OverflowError("no such instant")

    keeper = Timekeeper(Deadlines([START_MS + 9], []), timekeeper.VirtualClock(Hand()))
    assert keeper.trouble() is None
    clock = timekeeper.ScaledClock(Hand(), 2)
    keeper.clock = clock
    assert keeper.trouble() is None
    clock._wall = broken
    assert "no such instant" in (keeper.trouble() or "")


def test_automatic_clock_jumps_when_nothing_happens() -> None:
    """After a quiet while it goes to the next deadline, and from there to the next but one."""

    async def story() -> Deadlines:
        cluster = Deadlines([START_MS + 60_000, START_MS + 120_000], [])
        clock = timekeeper.VirtualClock(Hand(), auto=True)
        keeper = Timekeeper(cluster, clock, quiet_ms=5)
        keeper.settled()
        await cluster.is_over.wait()
        assert clock.now().group_ms == START_MS + 120_000
        keeper.stop()
        return cluster

    cluster = asyncio.run(asyncio.wait_for(story(), 5))
    assert [at for _, at in cluster.fired] == [START_MS + 60_000, START_MS + 120_000]


def test_alarm_rings_for_both_clocks() -> None:
    """On the wall clock deadlines of either kind fire by themselves."""

    async def story() -> Deadlines:
        wall = timekeeper.steady_wall()
        cluster = Deadlines([wall() + 20], [wall() + 10])
        keeper = Timekeeper(cluster, timekeeper.WallClock(time.monotonic))
        keeper.settled()
        await cluster.is_over.wait()
        keeper.stop()
        return cluster

    cluster = asyncio.run(asyncio.wait_for(story(), 5))
    assert sorted(kind for kind, _ in cluster.fired) == ["group", "wall"]


@pytest.mark.parametrize("text", ["wall", "scaled 10", "virtual"])
def test_group_time_never_goes_back_with_a_new_clock(text: str) -> None:
    """A clock that takes over goes on from where the one before it was moved to."""

    async def story() -> None:
        keeper = Timekeeper(Deadlines([], []), timekeeper.parse_clock("virtual"))
        await keeper.advance(10**9)
        was_ms = keeper.clock.now().group_ms
        keeper.set_clock(timekeeper.parse_clock(text))
        now = keeper.clock.now()
        assert was_ms <= now.group_ms < was_ms + 10_000
        assert now.wall_ms < was_ms
        delay_ms = keeper.clock.wall_until_group_ms(was_ms + 60_000, now)
        expected = {"wall": 60_000, "scaled 10": 6_000}.get(text)
        assert (delay_ms is None) == (expected is None)
        assert expected is None or 0 < expected - (delay_ms or 0) + 1 < 1_000
        keeper.stop()

    asyncio.run(story())
