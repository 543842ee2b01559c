import pytest
from msgspec import structs

from coordinator_sim.errors import ScenarioError
from coordinator_sim.sim.scenario import Choices, ChosenIds


def test_equal_seeds_choose_equally() -> None:
    """The same seed, site and key give the same numbers in the same order."""
    first, second = Choices(7), Choices(7)

    assert [first.choose("a", "x", 100) for _ in range(20)] == [
        second.choose("a", "x", 100) for _ in range(20)
    ]


def test_another_seed_chooses_otherwise() -> None:
    """Two seeds do not give the same twenty numbers."""
    first, second = Choices(7), Choices(8)

    assert [first.choose("a", "x", 100) for _ in range(20)] != [
        second.choose("a", "x", 100) for _ in range(20)
    ]


def test_a_new_site_does_not_disturb_the_others() -> None:
    """What one site draws does not depend on what others draw in between."""
    alone, among_others = Choices(7), Choices(7)
    expected = [alone.choose("a", "x", 1_000) for _ in range(20)]

    drawn = []
    for index in range(20):
        among_others.choose("b", str(index), 1_000)
        drawn.append(among_others.choose("a", "x", 1_000))

    assert drawn == expected


def test_site_and_key_are_kept_apart() -> None:
    """A site and key that concatenate alike are different streams."""
    choices = Choices(7)

    one = [choices.choose("ab", "c", 1_000) for _ in range(8)]
    other = [choices.choose("a", "bc", 1_000) for _ in range(8)]

    assert one != other


def test_the_choices_of_a_seed_never_change() -> None:
    """The numbers of seed 0 are those of every earlier version, so that old seeds still work."""
    choices = Choices(0)

    assert [choices.choose("latency", "a>1", 1_000) for _ in range(9)] == FIRST_OF_SEED_0


def test_an_edited_tape_is_followed() -> None:
    """One edited answer changes that answer alone."""
    original = Choices(7)
    drawn = [original.choose("a", "x", 10) for _ in range(5)]
    tape = list(original.tape)
    tape[2] = structs.replace(tape[2], chosen=0)

    replayed = Choices(8, tape)

    assert [replayed.choose("a", "x", 10) for _ in range(5)] == [*drawn[:2], 0, *drawn[3:]]


def test_a_tape_answer_outside_the_options_is_refused() -> None:
    """A tape of another program, with fewer options now, is named instead of followed."""
    original = Choices(7)
    original.choose("a", "x", 10)
    tape = [structs.replace(original.tape[0], chosen=9)]

    with pytest.raises(
        ScenarioError, match="the tape answers 9 at a/x, use 0: must be from 0 to 1"
    ):
        Choices(7, tape).choose("a", "x", 2)


def test_no_options_are_refused() -> None:
    """Asking to choose among nothing is a mistake of the caller."""
    with pytest.raises(ScenarioError, match="0 options at site 'a'"):
        Choices(0).choose("a", "x", 0)


def test_ids_are_uuids_of_version_4() -> None:
    """A drawn id has the shape Kafka's member ids end in."""
    drawn = ChosenIds(Choices(0), "broker-1").new_uuid()

    assert [len(part) for part in drawn.split("-")] == [8, 4, 4, 4, 12]
    assert drawn[14] == "4"


def test_ids_differ_even_on_an_all_dull_tape() -> None:
    """A tape edited to nothing but zeros still gives every member its own id."""
    original = Choices(0)
    ids = ChosenIds(original, "broker-1")
    for _ in range(3):
        ids.new_uuid()
    dull = [structs.replace(choice, chosen=0) for choice in original.tape]

    replayed = ChosenIds(Choices(0, dull), "broker-1")

    assert len({replayed.new_uuid() for _ in range(3)}) == 3


FIRST_OF_SEED_0 = [898, 450, 475, 431, 460, 46, 636, 673, 357]
