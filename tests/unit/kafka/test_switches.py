"""The rows of switches, and the profiles that they make."""

from msgspec.structs import asdict, replace

from coordinator_sim.kafka.profiles import PROFILES, Profile, profile_of
from coordinator_sim.kafka.releases import RELEASES
from coordinator_sim.kafka.switch import before, by_release, since
from coordinator_sim.kafka.switches import SWITCHES


def test_fields_and_rows_agree() -> None:
    """A profile has the fields that there are rows for, in their order, of their values' types."""
    assert Profile.__struct_fields__ == ("name", *(switch.name for switch in SWITCHES))
    types = {name: Profile.__annotations__[name] for name in Profile.__struct_fields__}
    odd = [
        switch.name
        for switch in SWITCHES
        for value in switch.values.values()
        if type(value) is not types[switch.name]
    ]
    assert odd == []


def test_a_switch_differs_where_it_is_asked() -> None:
    """A question to which all who are asked say the same is none, unless it is set by hand."""
    same = [
        switch.name
        for switch in SWITCHES
        if len({switch.value_in(name) for name in RELEASES if switch.is_asked_in(name)}) == 1
    ]
    assert same == [switch.name for switch in SWITCHES if switch.is_by_hand]


def test_releases_of_a_row_are_oldest_first() -> None:
    """The newest value that a profile has reached is the last one."""
    for switch in SWITCHES:
        found = [tuple(int(part) for part in release.split(".")) for release in switch.values]
        assert found == sorted(found), switch.name


def test_a_release_that_changes_nothing_is_as_the_one_before() -> None:
    """A Kafka 4.5 without rows of its own behaves like 4.4."""
    assert profile_of("4.5") == replace(PROFILES["4.4"], name="4.5")


def test_a_profile_is_the_last_release_of_its_line() -> None:
    """2.8 has what 2.8.1 brought, and nothing of 2.9."""
    assert since("2.8.1", "", "", "").value_in("2.8") is True
    assert since("2.9", "", "", "").value_in("2.8") is False
    assert before("2.8.1", "", "", "").value_in("0.10.2") is True
    numbers = by_release({"0": 1, "2.10": 3}, "", "", "")
    assert [numbers.value_in(name) for name in ("2.8", "3.9")] == [1, 3]


def test_questions_of_one_family_are_not_asked_of_the_other() -> None:
    """What is read by Java's modules alone is n/a up to 3.9, Scala's from 4.0 on."""
    asked = {
        switch.name: [name for name in RELEASES if switch.is_asked_in(name)] for switch in SWITCHES
    }
    assert asked["deletes_share_groups_first"] == list(RELEASES[RELEASES.index("4.0") :])
    assert asked["offsets_carry_expiry"] == ["0.10.2", "2.8", "3.9"]
    assert asked["member_id_required"] == list(RELEASES)


def test_what_nobody_asks_for_does_no_harm() -> None:
    """A value that is n/a is one that some profile has where it is asked, or plain no."""
    for switch in SWITCHES:
        used = {switch.value_in(name) for name in RELEASES if switch.is_asked_in(name)}
        for name in RELEASES:
            value = asdict(PROFILES[name])[switch.name]
            assert value in used or value is False, (switch.name, name)
