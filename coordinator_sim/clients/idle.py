"""What a consumer without records does while its group is stable: the phases of its rhythm.

A port tells its phases (`idle_phases`), a driver works out which of the heartbeats, polls and
refreshes of metadata would have happened by an instant, and the port goes on from there
(`skip_idle`).
"""

from typing import Final

from msgspec import Struct

REFRESH_ROOM: Final = 10
"""Least ratio of `metadata.max.age.ms` to the longest backoff: a backoff must not delay a
refresh."""


class IdlePhases(Struct, frozen=True, kw_only=True, gc=False):
    """The next instants of an idle consumer, in milliseconds on its clock.

    Args:
        heartbeat_due_ms: When the next heartbeat is sent.
        heartbeat_interval_ms: A multiple of `look_ms`.
        look_ms: How often the heartbeat thread looks, counted from its last heartbeat.
        metadata_due_ms: When metadata is next refreshed, if a thread polls the network then.
        metadata_max_age_ms: From an answer to the next refresh.
        refreshed_ms: When metadata was last answered.
        backoff_draws: Random choices for the backoffs of one answer without news.
        poll_ends_ms: When the present poll returns; None between two polls.
        longest_pause_ms: Longest time between two polls, and between two heartbeats, that changes
            nothing.
    """

    heartbeat_due_ms: int
    heartbeat_interval_ms: int
    look_ms: int
    metadata_due_ms: int
    metadata_max_age_ms: int
    refreshed_ms: int
    backoff_draws: int
    poll_ends_ms: int | None
    longest_pause_ms: int


class IdleSkip(Struct, frozen=True, kw_only=True, gc=False):
    """Counts and times of an idle consumer's skipped stretch; it resumes before a poll.

    Args:
        heartbeat_due_ms: When its next heartbeat is due.
        beat_ms: When its last heartbeat was sent.
        beat_count: Heartbeats that were sent and answered, at least one.
        answered_ms: When the last one was answered.
        polled_ms: When the application last began a poll.
        refresh_count: Refreshes of metadata, without news.
        refreshed_ms: When the last one was answered; ignored where there was none.
    """

    heartbeat_due_ms: int
    beat_ms: int
    beat_count: int
    answered_ms: int
    polled_ms: int
    refresh_count: int
    refreshed_ms: int
