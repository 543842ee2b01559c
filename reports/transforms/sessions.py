"""Members from their first request to their end."""

from typing import Final

from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`
from coordinator_sim_reports.engine import Engine, Frame
from coordinator_sim_reports.workers.rebalance_tables import END_KINDS

FLAP_SESSIONS: Final = 2
"""Number of session timeouts below which a session is a flap."""
_LIFE: Final = ", ".join(C.LIFE_KEY)
_ENDS: Final = " ".join(f"WHEN '{event.value}' THEN '{kind}'" for event, kind in END_KINDS.items())


def member_sessions(engine: Engine, events: Frame) -> Frame:
    """Return one row per member id: when it was seen, how it ended, what it did.

    Input: events of groups.
    Output: key (group, incarnation, member_id): `member_key`; `first_seen_us`; `end_us` and
    `end_kind` in LEFT, FAILED, KICKED, FENCED, REPLACED (its instance came back under another
    id) or OPEN (null end); `generations` it synced in; `rejoin_count`; `client_id`,
    `client_host`, `session_timeout_ms`; `first_assignment_ms`, from its first JoinGroup to its
    first successful SyncGroup answer; `flapped`.
    """
    synced = "CASE WHEN event = 'SYNC_RESP' AND coalesce(error_code, 0) = 0 THEN {} END"
    return engine.sql(
        f"""
        WITH seen AS (
            SELECT {_LIFE}, member_id,
                coalesce(max(group_instance_id), member_id) AS member_key,
                min(ts_us) AS first_seen_us,
                min(CASE WHEN end_kind IS NOT NULL THEN ts_us END) AS end_us,
                min_by(end_kind, CASE WHEN end_kind IS NOT NULL THEN ordinal END) AS end_kind,
                {engine.dialect.distinct(synced.format("generation"))} AS generations,
                count_if(event = 'JOIN_REQ') AS joins,
                max(client_id) AS client_id,
                max(client_host) AS client_host,
                max(session_timeout_ms) AS session_timeout_ms,
                min(CASE WHEN event = 'JOIN_REQ' THEN ts_us END) AS joined_us,
                min({synced.format("ts_us")}) AS assigned_us
            FROM (SELECT *, CASE event {_ENDS} END AS end_kind FROM {{events}})
            WHERE member_id <> ''
            GROUP BY {_LIFE}, member_id
        ),
        followed AS (
            SELECT *, lead(first_seen_us) OVER (
                PARTITION BY {_LIFE}, member_key ORDER BY first_seen_us, member_id
            ) AS replaced_us
            FROM seen
        )
        SELECT {_LIFE}, member_id, first_seen_us,
            coalesce(end_us, replaced_us) AS end_us,
            coalesce(end_kind, CASE WHEN replaced_us IS NULL THEN 'OPEN' ELSE 'REPLACED' END)
                AS end_kind,
            generations, client_id, client_host, session_timeout_ms, member_key,
            CAST(greatest(0, joins - 1) AS BIGINT) AS rejoin_count,
            (assigned_us - joined_us) / 1000 AS first_assignment_ms,
            coalesce(
                coalesce(end_us, replaced_us) - first_seen_us
                    < {FLAP_SESSIONS * 1000} * CAST(session_timeout_ms AS BIGINT),
                false
            ) AS flapped
        FROM followed
        """,
        events=events,
    )
