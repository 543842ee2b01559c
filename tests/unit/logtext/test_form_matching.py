"""Texts of forms in a block of lines are found where they are, and nowhere else."""

import numpy as np

from coordinator_sim.logtext.reading.form_matching import has_text
from coordinator_sim.logtext.reading.line_blocks import LineBlock


def test_a_text_of_any_length_is_found_where_it_is() -> None:
    """Also at the last place where it fits, and not where its last character is another one."""
    data = b"abcdefghijklmnopqrstuvwxyz-abcdefghijklmnopqrstuvwxyz0123456789 abcdefgh\n"
    block = LineBlock(data, 1)
    places = np.arange(len(data))

    for size in range(1, 40):
        for text in (data[:size], data[: size - 1] + b"!", data[-size:]):
            found = has_text(block, places, text.decode())
            expected = [data.startswith(text, place) for place in range(len(data))]
            assert found.tolist() == expected, text
