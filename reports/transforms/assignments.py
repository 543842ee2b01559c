"""Assignments as long rows."""

from coordinator_sim_reports import columns as C  # noqa: N812 - column constants, as in `C.GROUP_ID`
from coordinator_sim_reports.engine import Engine, Frame


def assignments(engine: Engine, generations: Frame, resources: Frame) -> Frame:
    """Return the long view of the dense form.

    Input: dense generations; resource lists, key (trace_id, resource_list_id).
    Output: one row per (generation, resource) that has an owner: `member_key`, `member_id`,
    `owned_from_us` (when the assignment was accepted).
    """
    item = engine.dialect.item
    generation = ", ".join(C.GENERATION_KEY)
    return engine.sql(
        f"""
        SELECT {", ".join(f"o.{name}" for name in C.GENERATION_KEY)},
            {item("r.resources", "o.position")} AS resource,
            {item("o.member_keys", "o.owner")} AS member_key,
            {item("o.member_ids", "o.owner")} AS member_id,
            o.sync_us AS owned_from_us
        FROM (
            SELECT {generation}, resource_list_id, member_ids, member_keys, sync_us,
                {engine.dialect.exploded("owners", "position", "owner")}
            FROM {{generations}}
        ) o
        JOIN {{resources}} r
            ON o.trace_id = r.trace_id AND o.resource_list_id = r.resource_list_id
        WHERE o.owner >= 0
        """,
        generations=generations,
        resources=resources,
    )
