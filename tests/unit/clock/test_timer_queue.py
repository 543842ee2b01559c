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


def test_postponed_timer_fires_at_its_last_deadline() -> None:
    """A deadline that moves away is noticed when its bucket comes up."""
    queue = TimerQueue()
    timer = queue.schedule(key("m"), 10, now_ms=0)
    for now_ms in range(1, 9):
        queue.postpone(timer, now_ms + 10)
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
    queue.schedule(key("other"), 996, now_ms=0)
    assert drain(queue, 996) == ["other"]
    queue.schedule(key("short"), 1_015, now_ms=996)
    assert drain(queue, 1_015) == ["short", "long"]


def test_wheel_stands_still_while_nothing_comes_up() -> None:
    """A short timer lines up behind a long one if the wheel has not turned in between."""
    queue = TimerQueue()
    queue.schedule(key("long"), 1_015, now_ms=0)
    queue.schedule(key("short"), 1_015, now_ms=996)
    assert drain(queue, 1_015) == ["long", "short"]


def test_timer_due_at_once_waits_for_its_turn() -> None:
    """A timer that is due when it is armed fires next, and may still be cancelled."""
    queue = TimerQueue()
    queue.start(5)
    queue.schedule(key("a"), 5, now_ms=5)
    queue.schedule(key("b"), 5, now_ms=5)
    queue.cancel(key("a"))
    assert queue.wake_up_ms() == 5
    assert drain(queue, 5) == ["b"]


def test_wake_up_is_the_start_of_the_next_bucket() -> None:
    """A coarse bucket comes up before its timers are due, even if they were cancelled."""
    queue = TimerQueue()
    queue.schedule(key("m"), 39, now_ms=0)
    assert queue.wake_up_ms() == 20
    queue.cancel(key("m"))
    assert queue.wake_up_ms() == 20
    assert drain(queue, 20) == []
    assert queue.wake_up_ms() is None


def test_firing_order_can_be_inspected() -> None:
    """Listing gives the timers as they would fire."""
    queue = TimerQueue()
    queue.schedule(key("late"), 50, now_ms=0)
    queue.schedule(key("a"), 10, now_ms=0)
    queue.schedule(key("b"), 10, now_ms=0)
    assert [timer.key.member_id for timer in queue] == ["a", "b", "late"]


def test_same_level_fires_in_order_of_arming() -> None:
    """Timers that waited in the same buckets keep the order in which they were armed."""
    queue = TimerQueue()
    for name in ("a", "b", "c"):
        queue.schedule(key(name), 5_000, now_ms=0)
    timer = queue.get(key("a"))
    assert timer is not None
    queue.postpone(timer, 5_000)
    assert drain(queue, 5_000) == ["b", "c", "a"]


def test_cancelled_timers_do_not_pile_up() -> None:
    """A cancelled timer leaves nothing behind but the bucket it was in."""
    queue = TimerQueue()
    for number in range(2_000):
        queue.schedule(key(str(number)), 300_000, now_ms=0)
        queue.cancel(key(str(number)))
    assert len(queue) == 0
    assert drain(queue, 300_000) == []


def test_touched_bucket_turns_the_wheel() -> None:
    """A timer armed and cancelled at once leaves its bucket behind."""
    queue = TimerQueue()
    queue.start(0)
    queue.touch(39)
    queue.touch(0)
    assert queue.wake_up_ms() == 20
    assert drain(queue, 20) == []
