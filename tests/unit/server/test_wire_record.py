"""The frames of a run, and where two runs part."""

from coordinator_sim.server.wire_record import Side, WireFrame, WireRecord, first_difference


def test_a_frame_is_known_with_its_last_byte() -> None:
    """However the bytes come, and on whichever side."""
    record = WireRecord(keep=True)
    record.write(10, 0, Side.CLIENT, b"\x00\x00\x00\x03a")
    record.write(11, 0, Side.SERVER, b"\x00\x00\x00\x01x\x00\x00\x00\x00")
    record.write(12, 0, Side.CLIENT, b"bc")
    assert record.frames == [
        WireFrame(11, 0, Side.SERVER, b"x"),
        WireFrame(11, 0, Side.SERVER, b""),
        WireFrame(12, 0, Side.CLIENT, b"abc"),
    ]


def test_the_digest_hangs_on_instants_and_connections() -> None:
    """The same bytes later, or on another connection, are another run."""

    def digest(at_us: int, connection: int) -> str:
        record = WireRecord()
        record.write(at_us, connection, Side.CLIENT, b"\x00\x00\x00\x01a")
        assert record.frame_count == 1
        assert record.frames == []
        return record.digest

    assert digest(1, 1) == digest(1, 1)
    assert len({digest(1, 1), digest(2, 1), digest(1, 2)}) == 3


def test_where_two_runs_part() -> None:
    """At the first frame that differs, or behind the end of the shorter run."""
    one, other = WireFrame(1, 0, Side.CLIENT, b"a"), WireFrame(1, 0, Side.CLIENT, b"b")
    assert first_difference([one, one], [one, other]) == 1
    assert first_difference([one], [one, one]) == 1
    assert first_difference([one], [one]) is None
