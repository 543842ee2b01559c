"""What the story of a case consists of: requests by name, and what must be seen afterwards.

States are compared as a whole: a field too much fails a case as a wrong one does. Where a Trogdor
has slack, instants may be that much later, and a state may come that much later.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct

from coordinator_sim_conformance.script.stage import CaseFailed
from coordinator_sim_conformance.trogdor_cases.trogdor import Json, Member, Reply, Trogdor

OK: Final = Reply(200, {})
"""Done, and nothing to say."""
NEVER: Final = -1
"""The start of a task that never ran."""
WHATEVER: Final = ...
"""A value that a case does not look at; it has to be there."""
_INSTANTS: Final = frozenset({"startMs", "startedMs", "doneMs"})
_LOOK_AGAIN_MS: Final = 30


class Starts(Struct, frozen=True):
    """A text that begins so."""

    text: str


class Has(Struct, frozen=True):
    """A text that has this in it."""

    text: str


class OneOf(Struct, frozen=True):
    """One of some values."""

    values: tuple[Json, ...]


class _Nothing:
    """Stands for a field that is absent."""

    def __repr__(self) -> str:
        return "nothing"


NOTHING: Final[Any] = _Nothing()


# -- requests ----------------------------------------------------------------------------------


def create(trogdor: Trogdor, task_id: str, spec: Json) -> Reply:
    """Create a task."""
    return trogdor.coordinator("POST", "/coordinator/task/create", {"id": task_id, "spec": spec})


def stop(trogdor: Trogdor, task_id: str) -> Reply:
    """Stop a task."""
    return trogdor.coordinator("PUT", "/coordinator/task/stop", {"id": task_id})


def destroy(trogdor: Trogdor, task_id: str) -> Reply:
    """Forget a task."""
    return trogdor.coordinator("DELETE", f"/coordinator/tasks?taskId={task_id}")


def create_worker(
    trogdor: Trogdor, node: str, worker_id: int, spec: Json, task_id: str = "foo"
) -> Reply:
    """Create a worker, without a coordinator."""
    body = {"workerId": worker_id, "taskId": task_id, "spec": spec}
    return trogdor.agent(node, "POST", "/agent/worker/create", body)


def stop_worker(trogdor: Trogdor, node: str, worker_id: int) -> Reply:
    """Stop a worker, without a coordinator."""
    return trogdor.agent(node, "PUT", "/agent/worker/stop", {"workerId": worker_id})


def destroy_worker(trogdor: Trogdor, node: str, worker_id: int) -> Reply:
    """Stop and forget a worker, without a coordinator."""
    return trogdor.agent(node, "DELETE", f"/agent/worker?workerId={worker_id}")


def restart_agent(trogdor: Trogdor, node: str) -> None:
    """Have an agent forget everything."""
    trogdor.kill_agent(node)
    trogdor.start_agent(node)


# -- states of tasks ---------------------------------------------------------------------------


def pending(spec: Json) -> Json:
    """A task that waits for its start."""
    return {"state": "PENDING", "spec": spec, "status": None}


def running(spec: Json, started_ms: int, status: Json) -> Json:
    """A task that runs."""
    return {"state": "RUNNING", "spec": spec, "startedMs": started_ms, "status": status}


def stopping(spec: Json, started_ms: int, status: Json) -> Json:
    """A task that was told to stop."""
    return running(spec, started_ms, status) | {"state": "STOPPING"}


def done(
    spec: Json,
    started_ms: int,
    done_ms: Json,
    *,
    status: Json = NOTHING,
    error: Json = NOTHING,
    cancelled: bool = False,
) -> Json:
    """A task that is over; NEVER where it never ran."""
    return {
        "state": "DONE",
        "spec": spec,
        "startedMs": started_ms,
        "doneMs": done_ms,
        "error": error,
        "cancelled": cancelled,
        "status": status,
    }


# -- states of workers -------------------------------------------------------------------------


def worker_running(task_id: str, spec: Json, started_ms: int, status: Json = "active") -> Json:
    """A worker that runs."""
    return running(spec, started_ms, status) | {"taskId": task_id}


def worker_stopping(task_id: str, spec: Json, started_ms: int, status: Json = "active") -> Json:
    """A worker that is being stopped."""
    return stopping(spec, started_ms, status) | {"taskId": task_id}


def worker_done(
    task_id: str,
    spec: Json,
    started_ms: int,
    done_ms: int,
    *,
    status: Json = "done",
    error: Json = NOTHING,
) -> Json:
    """A worker that is over."""
    return {
        "state": "DONE",
        "taskId": task_id,
        "spec": spec,
        "startedMs": started_ms,
        "doneMs": done_ms,
        "status": status,
        "error": error,
    }


def expired(task_id: str, spec: Json, now_ms: int) -> Json:
    """A worker whose end had come when it was created; it never began."""
    return worker_done(task_id, spec, now_ms, now_ms, status=None, error="worker expired")


# -- what must be seen -------------------------------------------------------------------------


def expect_task(trogdor: Trogdor, task_id: str, wanted: Json) -> None:
    """Fail unless a task is in this state.

    Raises:
        CaseFailed: it is in another one, or is not there.
    """

    def look() -> Json:
        reply = trogdor.coordinator("GET", f"/coordinator/tasks/{task_id}")
        return reply.body

    _expect(trogdor, f"task {task_id}", look, wanted)


def expect_no_task(trogdor: Trogdor, task_id: str) -> None:
    """Fail unless a task is unknown.

    Raises:
        CaseFailed: it is there.
    """
    reply = trogdor.coordinator("GET", f"/coordinator/tasks/{task_id}")
    expect_refusal(reply, 404, f'No task with ID "{task_id}" exists.')


def expect_tasks(trogdor: Trogdor, query: str, *task_ids: str) -> None:
    """Fail unless these are the tasks that a query finds.

    Raises:
        CaseFailed: they are others.
    """
    reply = trogdor.coordinator("GET", f"/coordinator/tasks{query}")
    wanted = {"tasks": dict.fromkeys(task_ids, WHATEVER)} if task_ids else {}
    expect_answer(reply, 200, wanted)


def expect_workers(trogdor: Trogdor, node: str, wanted: Mapping[int, Json]) -> None:
    """Fail unless an agent has these workers and no others.

    Raises:
        CaseFailed: it has others, or in other states.
    """
    workers: Json = {str(key): state for key, state in wanted.items()} or NOTHING
    _expect(
        trogdor,
        f"workers of {node}",
        lambda: trogdor.agent(node, "GET", "/agent/status").body,
        {"serverStartMs": WHATEVER, "workers": workers},
    )


def expect_worker(trogdor: Trogdor, node: str, worker_id: int, wanted: Json) -> None:
    """Fail unless this is the one worker of an agent, in this state.

    Raises:
        CaseFailed: it is another one, or in another state.
    """
    expect_workers(trogdor, node, {worker_id: wanted})


def expect_members(trogdor: Trogdor, group_id: str, *wanted: Member) -> None:
    """Fail unless these are the members of a group, by client id.

    Raises:
        CaseFailed: they are others.
    """
    shown = [str(each) for each in wanted]
    _expect(trogdor, f"members of {group_id}", lambda: _shown(trogdor, group_id), shown)


def _shown(trogdor: Trogdor, group_id: str) -> list[str]:
    return [str(each) for each in trogdor.members(group_id)]


def expect_answer(reply: Reply, status: int, wanted: Json) -> None:
    """Fail unless an answer is this one.

    Raises:
        CaseFailed: it is another one.
    """
    expect("status", reply.status, status)
    expect("answer", reply.body, wanted)


def expect_refusal(reply: Reply, code: int, message: Json = WHATEVER) -> None:
    """Fail unless an answer is a refusal with a code, and a message if one is named.

    Raises:
        CaseFailed: it is another one.
    """
    expect_answer(reply, code, {"code": code, "message": message})


def expect(what: str, seen: Json, wanted: Json) -> None:
    """Fail unless something is as wanted.

    Raises:
        CaseFailed: it is not.
    """
    difference = _difference(what, wanted, seen, 0)
    if difference:
        raise CaseFailed(difference, ())


def _expect(trogdor: Trogdor, what: str, look: Callable[[], Json], wanted: Json) -> None:
    """Look until what is seen is as wanted, as long as it may be late."""
    latest_ms = trogdor.now_ms + trogdor.slack_ms
    while difference := _difference(what, wanted, look(), trogdor.slack_ms):
        if trogdor.now_ms >= latest_ms:
            raise CaseFailed(difference, ())
        trogdor.at(trogdor.now_ms + _LOOK_AGAIN_MS)


def _difference(what: str, wanted: Json, seen: Json, slack_ms: int) -> str:
    """The first difference; empty for none."""
    match wanted:
        case OneOf(values):
            found = [_difference(what, value, seen, slack_ms) for value in values]
            return " / ".join(found) if all(found) else ""
        case dict() if isinstance(seen, dict):
            return _difference_of_objects(what, wanted, seen, slack_ms)
        case int() if slack_ms and what.rpartition(".")[2] in _INSTANTS and wanted > NEVER:
            fits = isinstance(seen, int) and -slack_ms // 4 <= seen - wanted <= slack_ms
        case Starts(text):
            fits = isinstance(seen, str) and seen.startswith(text)
        case Has(text):
            fits = isinstance(seen, str) and text in seen
        case _:
            fits = wanted is WHATEVER or (wanted == seen and type(wanted) is type(seen))
    return "" if fits else f"{what}: wanted {wanted!r}, saw {seen!r}"


def _difference_of_objects(
    what: str, wanted: Mapping[str, Json], seen: Mapping[str, Json], slack_ms: int
) -> str:
    there = {key: value for key, value in wanted.items() if value is not NOTHING}
    if set(there) != set(seen):
        return f"{what}: wanted {', '.join(sorted(there))}, saw {', '.join(sorted(seen))}: {seen!r}"
    found = (_difference(f"{what}.{key}", there[key], seen[key], slack_ms) for key in there)
    return next(filter(None, found), "")
