"""What users reported of clients is shown by a scenario, and its fault by a broken model alone."""

import pytest
from msgspec import structs

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim_conformance.museum.report_bugs import REPORT_BUGS, report_rows
from coordinator_sim_conformance.museum.reports import ClientReport, Shown, reports
from coordinator_sim_conformance.script.stage import CaseFailed

API_NAMES = {api.name.replace("_", "").lower() for api in ApiKey}


@pytest.mark.parametrize("report", reports(), ids=lambda report: report.id)
def test_run_of_a_report_shows_what_the_table_says(report: ClientReport) -> None:
    """With the models as they are."""
    report.play()


@pytest.mark.parametrize("report", reports(), ids=lambda report: report.id)
def test_report_names_an_error_and_a_request_of_kafka(report: ClientReport) -> None:
    """Except where a protocol goes back without any error."""
    assert report.address.startswith("https://")
    error, _, api = report.error.partition(" at ")
    if api:
        assert error in ErrorCode.__members__
        assert api.lower() in API_NAMES


def test_table_shows_more_than_five_faults_of_several_models() -> None:
    """Each exhibit of the table is one of its rows."""
    modules = {exhibit.module.removeprefix("coordinator_sim.clients.") for exhibit in REPORT_BUGS}
    assert len(REPORT_BUGS) >= 5
    assert {"heartbeat_thread", "librdkafka.offsets", "async_consumer.positions"} <= modules
    assert {each.exhibit_id for each in REPORT_BUGS} <= {row["id"] for row in report_rows()}


def test_report_that_shows_something_else_fails() -> None:
    """A check of the table can fail: the fenced application does end."""
    (report,) = (each for each in reports() if each.id == "aiokafka-1186")
    unharmed = Shown(event="LIFECYCLE", text="raised", most=0)
    with pytest.raises(CaseFailed, match="number of LIFECYCLE"):
        structs.replace(report, shows=(unharmed,)).play()
