"""Whatever a spec or a message holds, its JSON says; whatever a text is, it is read or refused."""

import json
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct, inspect

from coordinator_sim.trogdor import generator_specs as generators
from coordinator_sim.trogdor import jackson
from coordinator_sim.trogdor.messages import (
    SPEC_CLASSES,
    AgentStatusResponse,
    CreateTaskRequest,
    CreateWorkerRequest,
    TasksResponse,
)
from coordinator_sim.trogdor.refusals import TrogdorRefusal
from coordinator_sim.trogdor.specs import TaskSpec
from coordinator_sim.trogdor.states import TaskPhase, TaskState, WorkerPhase, WorkerState
from coordinator_sim.trogdor.topic_specs import TopicsSpec
from coordinator_sim.trogdor.workload_specs import ConfigurableProducerSpec, ShareConsumeBenchSpec

pytestmark = pytest.mark.property

LONGS = st.integers(-(2**63), 2**63 - 1)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
NAMES = st.text('abé[-]1😀:\n"\\', min_size=1, max_size=4)
SIZES = st.integers(8, 40)
ANY_JSON = st.recursive(
    st.none() | st.booleans() | LONGS | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
SOME_JSON = ANY_JSON.filter(lambda value: value not in ([], {}))
"""Not what is left out, and read as null."""


def percents() -> st.SearchStrategy[generators.RandomComponentPayloadGenerator]:
    """Components that sum to 100 percent."""
    return st.builds(
        lambda first, one, other, seed: generators.RandomComponentPayloadGenerator(
            seed=seed,
            components=(
                generators.RandomComponent(percent=first, component=one),
                generators.RandomComponent(percent=100 - first, component=other),
            ),
        ),
        st.integers(1, 99),
        st.builds(generators.NullPayloadGenerator) | st.none(),
        st.builds(generators.SequentialPayloadGenerator, size=SIZES, start_offset=LONGS),
        LONGS,
    )


PAYLOADS: st.SearchStrategy[generators.PayloadGenerator] = st.one_of(
    st.builds(generators.ConstantPayloadGenerator, size=SIZES, value=st.binary(max_size=5)),
    st.builds(generators.UniformRandomPayloadGenerator, size=SIZES, padding=st.integers(0, 8)),
    st.builds(generators.TimestampRandomPayloadGenerator, size=SIZES, seed=LONGS),
    st.builds(
        generators.GaussianTimestampRandomPayloadGenerator,
        message_size_deviation=st.floats(allow_nan=False),
    ),
    percents(),
)
FAMILIES: Mapping[type[Struct], st.SearchStrategy[Any]] = {
    generators.PayloadGenerator: PAYLOADS,
    generators.TransactionGenerator: st.builds(
        generators.UniformTransactionsGenerator, messages_per_transaction=SIZES
    ),
    generators.ThroughputGenerator: st.builds(
        generators.GaussianThroughputGenerator, window_size_ms=LONGS
    ),
    generators.FlushGenerator: st.builds(generators.ConstantFlushGenerator),
    generators.RecordProcessor: st.builds(
        generators.TimestampRecordProcessor, histogram_max_ms=SIZES, histogram_step_ms=SIZES
    ),
}


SCALARS: Mapping[type[inspect.Type], st.SearchStrategy[Any]] = {
    inspect.BoolType: st.booleans(),
    inspect.StrType: TEXTS,
    inspect.AnyType: SOME_JSON,
}


def values(wanted: inspect.Type) -> st.SearchStrategy[Any]:
    """Values of the type of a field that its JSON keeps."""
    match wanted:
        case inspect.Metadata():
            return values(wanted.type)
        case inspect.IntType():
            half = 2**63 if wanted.ge is None else -wanted.ge
            return st.integers(-half, half - 1)
        case inspect.EnumType():
            return st.sampled_from(list(wanted.cls))
        case inspect.UnionType():
            first = next(one for one in wanted.types if not isinstance(one, inspect.NoneType))
            return st.none() | values(first)
        case inspect.VarTupleType():
            return st.lists(values(wanted.item_type), max_size=3, unique=True).map(tuple)
        case inspect.DictType():
            content = values(wanted.value_type).filter(lambda value: value not in ("", ()))
            return st.dictionaries(values(wanted.key_type), content, max_size=3)
        case inspect.StructType():
            return FAMILIES[wanted.cls] if wanted.cls in FAMILIES else structs(wanted.cls)
    return SCALARS[type(wanted)]


def structs(kind: type[Struct]) -> st.SearchStrategy[Any]:
    """Values of a class."""
    info = inspect.type_info(kind)
    assert isinstance(info, inspect.StructType)
    fields = {field.name: values(field.type) for field in info.fields}
    if kind is ConfigurableProducerSpec:
        fields["active_topic"] = structs(TopicsSpec)
    if kind is ShareConsumeBenchSpec:
        # An empty group is not written, and read as `share`, by Java too.
        fields["share_group"] = NAMES
    return st.builds(kind, **fields)


SPECS: st.SearchStrategy[TaskSpec] = st.one_of([structs(kind) for kind in SPEC_CLASSES.values()])
DONE_TASKS = st.builds(
    TaskState,
    state=st.just(TaskPhase.DONE),
    spec=SPECS,
    started_ms=LONGS,
    done_ms=LONGS,
    error=TEXTS,
    cancelled=st.booleans(),
    status=SOME_JSON,
)
RUNNING_WORKERS = st.builds(
    WorkerState,
    state=st.sampled_from([WorkerPhase.RUNNING, WorkerPhase.STOPPING]),
    task_id=TEXTS,
    spec=SPECS,
    started_ms=LONGS,
    status=SOME_JSON,
)


@given(SPECS)
def test_a_spec_is_read_as_it_was_written(spec: TaskSpec) -> None:
    """Compact and pretty, with every field; another parser of JSON agrees on the tree."""
    text = jackson.text(spec)

    assert jackson.read(text, TaskSpec) == spec
    assert jackson.read(jackson.pretty(spec), TaskSpec) == spec
    assert jackson.from_tree(jackson.tree(spec), TaskSpec) == spec
    assert list(json.loads(text))[:3] == ["class", "startMs", "durationMs"]


@given(
    st.one_of(
        st.builds(CreateTaskRequest, id=TEXTS.filter(bool) | st.none(), spec=SPECS | st.none()),
        st.builds(CreateWorkerRequest, worker_id=LONGS, task_id=NAMES, spec=SPECS),
        st.builds(TasksResponse, tasks=st.dictionaries(TEXTS, DONE_TASKS, max_size=2)),
        st.builds(AgentStatusResponse, workers=st.dictionaries(LONGS, RUNNING_WORKERS, max_size=2)),
    )
)
def test_a_message_is_read_as_it_was_written(message: Struct) -> None:
    """Requests and responses with specs and states inside."""
    assert jackson.read(jackson.write(message), type(message)) == message


@given(ANY_JSON)
def test_any_json_is_read_and_written(value: object) -> None:
    """Our text of a tree says to another parser what it says to us."""
    text = jackson.text(value)

    assert json.loads(text) == value
    assert jackson.read_tree(text) == value
    assert jackson.read_tree(f"/*a*/{jackson.pretty(value)}\n//b") == value
    assert jackson.read_tree(json.dumps(value)) == value


PIECES = st.sampled_from(
    [
        *'{}[],:"\\0- \n\0é',
        *('"id"', '"spec"', '"class"', '"startMs"', "null", "true", "1e9", "/*", "*/", "//"),
        *(f'"{name}"' for name in SPEC_CLASSES),
    ]
)


@given(st.lists(PIECES, max_size=25).map("".join))
def test_whatever_a_text_is_it_is_read_or_refused(text: str) -> None:
    """Nothing but a refusal with Trogdor's codes comes of broken texts."""
    try:
        jackson.read(text, CreateTaskRequest)
    except TrogdorRefusal as refusal:
        assert refusal.code in {400, 500, 501}  # noqa: PT017 (most texts are refused)


@given(st.fixed_dictionaries({}, optional={"id": ANY_JSON, "spec": ANY_JSON, "x": ANY_JSON}))
def test_whatever_json_is_it_is_read_or_refused(tree: object) -> None:
    """Nothing but a refusal with Trogdor's codes comes of values of wrong types."""
    try:
        jackson.from_tree(tree, CreateTaskRequest)
    except TrogdorRefusal as refusal:
        assert refusal.code in {400, 500, 501}  # noqa: PT017 (most values are refused)
