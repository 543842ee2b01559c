"""A running coordinator graded by pytest: every requirement is one test.

    class TestMyBroker(CoordinatorConformance):
        bootstrap = "localhost:9092"

The cases are played side by side, as `conformance run --bootstrap` plays them, and each test tells
how its own ended.
"""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar, Final, cast

import pytest

from coordinator_sim.errors import ConfigError, CoordinatorSimError
from coordinator_sim.kafka.profiles import profile_named
from coordinator_sim_conformance.registry import all_cases, any_cases
from coordinator_sim_conformance.running import Ending, Verdict
from coordinator_sim_conformance.script.play import Case
from coordinator_sim_conformance.targets.choice import Subject, opened_endpoint
from coordinator_sim_conformance.verdicts.baseline import Gaps, read_baseline, with_gap
from coordinator_sim_conformance.verdicts.results import with_command
from coordinator_sim_conformance.verdicts.standing import Standing, standing_of
from coordinator_sim_conformance.verdicts.told import details, summary

AUTO: Final = "auto"
_REQUIREMENT: Final = "conformance_case"
"""Argument of the test: a case of the suite."""
_LOG: Final = logging.getLogger("coordinator_sim_pytest")


class GradedEndpoint:
    """An endpoint whose cases are played when the first of their endings is asked for.

    Args:
        subject: The endpoint, opened.
        profile: Profile whose behaviour is required.
        gaps: Known gaps.
        cases: Cases to play side by side; one that is asked for besides is played alone.
    """

    def __init__(self, subject: Subject, profile: str, gaps: Gaps, cases: list[Case]) -> None:
        self.profile = profile
        self._subject = subject
        self._gaps = gaps
        self._cases = cases
        self._playing: Iterator[Ending] | None = None
        self._ended: dict[str, Ending] = {}

    def ending(self, case: Case) -> Ending:
        """Return how a case of the profile ended, as soon as it did."""
        if self._playing is None:
            self._playing = iter(self._subject.play(self._cases, self.profile))
        while case.case_id not in self._ended:
            ended = next(self._playing, None)
            if ended is None:
                (ended,) = self._subject.play([case], self.profile)
            told = with_command(ended, self._subject.options, has_profile=True)
            self._ended[ended.case_id] = with_gap(told, self._gaps)
        return self._ended[case.case_id]


class CoordinatorConformance:
    """A class to subclass: each requirement of the suite is one test of it.

    `bootstrap` is an attribute, or a fixture of that name with the scope `module` or wider that
    starts the broker and yields its address. Known gaps are expected failures, strictly: one that
    passes fails the test. Cases that want more than the endpoint offers are skipped with that
    reason.

    Attributes:
        bootstrap: Addresses, `HOST:PORT` with commas between.
        profile: Kafka that the endpoint should be; `auto` takes the nearest by its versions.
        baseline: File of known gaps with their reasons, as `conformance run --baseline` has it.
        command_config: Properties file of a Java client, for TLS and SASL.
        declared: TOML file with what cannot be asked of the endpoint.
        strict: Whether to fail where a quirk of Kafka's is not met; an expected failure otherwise.
    """

    profile: ClassVar[str] = AUTO
    baseline: ClassVar[str | os.PathLike[str] | None] = None
    command_config: ClassVar[str | os.PathLike[str] | None] = None
    declared: ClassVar[str | os.PathLike[str] | None] = None
    strict: ClassVar[bool] = False

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """Make a test of every requirement."""
        if _REQUIREMENT in metafunc.fixturenames:
            cases = all_cases()
            if self.profile != AUTO:
                wanted = profile_named(self.profile).name
                cases = tuple(each for each in cases if wanted in each.requirement.profiles)
            metafunc.parametrize(_REQUIREMENT, cases, ids=[case.case_id for case in cases])

    def test_requirement(
        self,
        request: pytest.FixtureRequest,
        graded_endpoint: GradedEndpoint,
        conformance_case: Case,
    ) -> None:
        """The endpoint does what the requirement says."""
        requirement = conformance_case.requirement
        if graded_endpoint.profile not in requirement.profiles:
            pytest.skip(f"Kafka {graded_endpoint.profile} need not do this")
        request.node.user_properties += [
            ("requirement", conformance_case.title),
            ("level", requirement.level.value),
            *(("source", source) for source in requirement.sources),
        ]
        _tell(request, graded_endpoint.ending(conformance_case), is_strict=self.strict)


@contextmanager
def graded(request: pytest.FixtureRequest) -> Iterator[GradedEndpoint]:
    """The endpoint of a class, asked what it is; what was made there is removed at the end."""
    kind: type[CoordinatorConformance] = request.cls
    given = getattr(kind, "bootstrap", None)
    bootstrap = given if isinstance(given, str) else request.getfixturevalue("bootstrap")
    try:
        baseline = _path(kind.baseline)
        gaps = {} if baseline is None else read_baseline(baseline, any_cases())
        with opened_endpoint(
            bootstrap, _path(kind.command_config), _path(kind.declared), _LOG.info
        ) as subject:
            profile = subject.nearest if kind.profile == AUTO else kind.profile
            named = profile_named(profile or AUTO).name
            yield GradedEndpoint(subject, named, gaps, _chosen(request, named))
    except (CoordinatorSimError, OSError) as error:
        pytest.fail(str(error), pytrace=False)


def _tell(request: pytest.FixtureRequest, ending: Ending, *, is_strict: bool) -> None:
    """Make an ending the outcome of the present test."""
    standing = standing_of(ending, is_strict=is_strict)
    if standing is Standing.SKIPPED:
        pytest.skip(ending.reason)
    if ending.known_gap:
        mark = pytest.mark.xfail(reason=ending.known_gap, strict=True)
        request.node.add_marker(mark)
    elif standing is Standing.QUIRK:
        request.node.add_marker(pytest.mark.xfail(reason=summary(ending, standing)))
    if ending.verdict is not Verdict.PASSED:
        heading = f"{ending.verdict.value} as {ending.profile}: {ending.title}"
        pytest.fail("\n".join((heading, *details(ending))), pytrace=False)


def _chosen(request: pytest.FixtureRequest, profile: str) -> list[Case]:
    """Return the cases of those tests of the class that this run has chosen.

    A worker of xdist does not know which tests will be its own: there each is played alone.
    """
    if hasattr(request.config, "workerinput"):
        return []
    chosen = []
    for item in request.session.items:
        if isinstance(item, pytest.Function) and item.cls is request.cls and _is_played(item):
            case = cast("Case", item.callspec.params[_REQUIREMENT])
            if profile in case.requirement.profiles:
                chosen.append(case)
    return chosen


def _is_played(item: pytest.Function) -> bool:
    return hasattr(item, "callspec") and _REQUIREMENT in item.callspec.params


def _path(given: str | os.PathLike[str] | None) -> Path | None:
    """Return a file that is there.

    Raises:
        ConfigError: there is no such file.
    """
    if given is None:
        return None
    path = Path(given)
    if not path.is_file():
        raise ConfigError(f"there is no file {path}: take the attribute out, or write the file")
    return path
