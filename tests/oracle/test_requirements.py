"""Every case on Apache Kafka's own coordinators: a case that fails there is wrong about Kafka."""

from collections import Counter

import pytest

from coordinator_sim.errors import MissingDependencyError
from coordinator_sim_conformance.differ.references import REFERENCES, Reference
from coordinator_sim_conformance.registry import all_cases
from coordinator_sim_conformance.running import Verdict, cases_for
from coordinator_sim_conformance.targets.choice import opened
from coordinator_sim_conformance.targets.target import Capability
from coordinator_sim_conformance.wire_cases.case import WireCase


@pytest.mark.oracle
@pytest.mark.parametrize("reference", REFERENCES.values(), ids=lambda each: each.name)
def test_kafka_meets_its_own_requirements(reference: Reference) -> None:
    """Kafka's own coordinator fails no case; it skips those that look inside or want a cluster.

    It has no records; of the other cases it skips few.

    Those on versions and frames want sockets, and are played on brokers.
    """
    scripts = [case for case in all_cases() if not isinstance(case, WireCase)]
    cases = cases_for(scripts, reference.profile)
    try:
        with opened(f"oracle:{reference.name}", print) as subject:
            endings = list(subject.play(cases, reference.profile))
    except MissingDependencyError as error:
        pytest.skip(str(error))

    counts = Counter(ending.verdict for ending in endings)
    wrong = [
        f"{ending.case_id}: {ending.reason}"
        for ending in endings
        if ending.verdict in {Verdict.FAILED, Verdict.UNKNOWN}
    ]
    assert wrong == []
    without_records = [e for e in endings if (e.reason or "").endswith(Capability.RECORDS.value)]
    assert counts[Verdict.PASSED] > 10 * (counts[Verdict.SKIPPED] - len(without_records))
