"""The timers of a coordinator."""

from coordinator_sim.clock.timer_queue import TimerKey, TimerKind, TimerQueue


def key(name: str, kind: TimerKind = TimerKind.SESSION) -> TimerKey:
    """A timer's name."""
    return TimerKey(kind, "g", name)


def drain(queue: TimerQueue, now_ms: int) -> list[str]:
    """The members whose timers fire up to that instant, in order."""
    fired = []
    while (timer := queue.pop_due(now_ms)) is not None:
        fired.append(timer.key.member_id)
    return fired


def test_timers_fire_by_deadline() -> None:
    """The earliest deadline fires first, whatever the order of arming."""
    queue = TimerQueue()
    queue.schedule(key("late"), 20, now_ms=0)
    queue.schedule(key("soon"), 10, now_ms=0)
    assert queue.next_deadline_ms() == 10
    assert drain(queue, 20) == ["soon", "late"]
    assert queue.next_deadline_ms() is None


def test_postponed_timer_costs_no_entry() -> None:
    """A deadline that moves away is noticed when its entry comes up."""
    queue = TimerQueue()
    timer = queue.schedule(key("m"), 10, now_ms=0)
    for now_ms in range(1, 9):
        queue.postpone(timer, now_ms + 10, now_ms)
    assert drain(queue, 17) == []
    assert queue.next_deadline_ms() == 18
    assert drain(queue, 18) == ["m"]


def test_deadline_may_move_ahead() -> None:
    """A timer armed again for an earlier instant fires then, and once."""
    queue = TimerQueue()
    queue.schedule(key("m"), 300_000, now_ms=0)
    queue.schedule(key("m"), 10, now_ms=0)
    assert drain(queue, 300_000) == ["m"]
    assert len(queue) == 0


def test_cancelled_timer_never_fires() -> None:
    """Cancelling drops the name; arming it again makes a new timer."""
    queue = TimerQueue()
    queue.schedule(key("m"), 10, now_ms=0)
    queue.cancel(key("m"))
    assert queue.next_deadline_ms() is None
    queue.schedule(key("m"), 12, now_ms=0)
    assert drain(queue, 12) == ["m"]


def test_short_timer_fires_before_a_long_one_of_the_same_instant() -> None:
    """A timer put straight into the 1 ms bucket precedes those that drop in from coarser ones."""
    queue = TimerQueue()
    queue.schedule(key("long"), 1_015, now_ms=0)
    queue.schedule(key("short"), 1_015, now_ms=996)
    assert drain(queue, 1_015) == ["short", "long"]


def test_same_level_fires_in_order_of_arming() -> None:
    """Timers that waited in the same buckets keep the order in which they were armed."""
    queue = TimerQueue()
    for name in ("a", "b", "c"):
        queue.schedule(key(name), 5_000, now_ms=0)
    timer = queue.get(key("a"))
    assert timer is not None
    queue.postpone(timer, 5_000, 0)
    assert drain(queue, 5_000) == ["b", "c", "a"]


def test_dead_entries_do_not_pile_up() -> None:
    """Cancelled timers are swept out of the heap."""
    queue = TimerQueue()
    for number in range(20_000):
        queue.schedule(key(str(number)), 300_000, now_ms=0)
        queue.cancel(key(str(number)))
    assert len(queue._heap) < 2_000
