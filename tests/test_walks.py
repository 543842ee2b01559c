"""How far requests, log lines and scenarios walk through the library: ceilings that only fall."""

from tools.house_ceilings import complaints, read_ceilings, walks


def test_walks_stay_below_ceilings_that_only_fall() -> None:
    """No walk calls more functions or enters more modules than its ceiling allows."""
    assert complaints(walks(), read_ceilings()["walks"]) == []


def test_number_above_its_ceiling_is_found() -> None:
    """A walk that grew by one call is reported with both numbers."""
    assert complaints({"Heartbeat 4: calls": 60}, {"Heartbeat 4: calls": 59}) == [
        "Heartbeat 4: calls: found 60, the ceiling is 59"
    ]


def test_new_number_has_ceiling_zero() -> None:
    """A room without a ceiling begins clean."""
    assert complaints({"new room": 1}, {}) == ["new room: found 1, the ceiling is 0"]


def test_ceiling_far_above_its_number_has_to_be_lowered() -> None:
    """Three percent are left for versions of Python; beyond them the command is named."""
    assert complaints({"walk": 97}, {"walk": 100}) == []
    (line,) = complaints({"walk": 96}, {"walk": 100})
    assert line.startswith("walk: found 96, lower the ceiling of 100: python -m tools.")
