"""The tape of choices: the only source of randomness in a run.

A choice is named by its site, a key within the site, and the number of earlier uses of that pair.
Its value is a keyed hash of the seed and that name, so a new site never disturbs the others.
Choice 0 is always the neutral one: the smallest latency, no fault, first in first out.
"""

import struct
from collections.abc import Callable, Iterable
from functools import partial
from hashlib import blake2b
from typing import Final

from msgspec import Struct

from coordinator_sim.errors import ScenarioError

_WORDS: Final = struct.Struct(">8Q")
_WORDS_PER_BLOCK: Final = 8
"""One 64-byte BLAKE2b digest serves eight uses of a stream: hashing dominates a draw."""
_MAX_OPTIONS: Final = 1 << 61
"""With 64-bit words the bias of the remainder stays below an eighth even here."""


class Choice(Struct, frozen=True, gc=False):
    """One choice on the tape: the `use`-th (from 0) of (site, key)."""

    site: str
    key: str
    use: int
    options: int
    chosen: int


class _Stream:
    """The choices of one (site, key), in order of use."""

    __slots__ = ("_name", "_seed_key", "_words", "use")

    def __init__(self, seed_key: bytes, site: str, key: str) -> None:
        # The length of the site keeps ("a", "bc") and ("ab", "c") apart.
        self._name = f"{len(site)}:{site}{key}:".encode()
        self._seed_key = seed_key
        self._words: tuple[int, ...] = ()
        self.use = 0

    def next_word(self) -> int:
        """Return the 64-bit word of the next use."""
        use = self.use
        self.use = use + 1
        index = use % _WORDS_PER_BLOCK
        if index == 0 or not self._words:
            block = blake2b(
                self._name + str(use // _WORDS_PER_BLOCK).encode(), key=self._seed_key
            ).digest()
            self._words = _WORDS.unpack(block)
        return self._words[index]

    def skip(self, count: int) -> None:
        """Use up so many words."""
        self.use += count
        self._words = ()


class Choices:
    """A source of choices for one run, recorded as they are made.

    Args:
        seed: Any whole number; equal seeds give equal choices.
        tape: Choices to repeat whatever the seed gives, in any order; edit one by replacing its
            `chosen`. Choices missing on the tape come from the seed.
        record: Whether to keep the tape of this run; a long run with drawn latencies makes one
            entry per message.
    """

    __slots__ = ("_forced", "_record", "_seed_key", "_streams", "seed", "tape")

    def __init__(self, seed: int, tape: Iterable[Choice] = (), *, record: bool = True) -> None:
        self.seed = seed
        self.tape: list[Choice] = []
        self._record = record
        self._seed_key = blake2b(str(seed).encode(), digest_size=32).digest()
        self._streams: dict[tuple[str, str], _Stream] = {}
        self._forced = {(c.site, c.key, c.use): c.chosen for c in tape}

    def choose(self, site: str, key: str, options: int) -> int:
        """Return a number from 0 to `options` - 1; 0 is the neutral one.

        Args:
            site: Place in the program, such as `latency`.
            key: Subject of the choice there, such as a connection's name.
            options: Number of alternatives, from 1 to 2^61.

        Raises:
            ScenarioError: the tape has a choice outside the options, or `options` is wrong.
        """
        if not 0 < options <= _MAX_OPTIONS:
            raise ScenarioError(f"{options} options at site {site!r}: must be from 1 to 2^61")
        stream = self._stream(site, key)
        use = stream.use
        chosen = stream.next_word() % options
        if self._forced:
            chosen = self._forced.get((site, key, use), chosen)
            if not 0 <= chosen < options:
                raise ScenarioError(
                    f"the tape answers {chosen} at {site}/{key}, use {use}: "
                    f"must be from 0 to {options - 1}"
                )
        if self._record:
            self.tape.append(Choice(site, key, use, options, chosen))
        return chosen

    def drawer(self, site: str, key: str, options: int) -> Callable[[], int]:
        """Return a function that calls `choose` for these, cheaper where no tape is kept."""
        if self.is_taped or not 0 < options <= _MAX_OPTIONS:
            return partial(self.choose, site, key, options)
        next_word = self._stream(site, key).next_word
        return lambda: next_word() % options

    @property
    def is_taped(self) -> bool:
        """Whether choices are kept, or taken from a tape: then none can be skipped."""
        return self._record or bool(self._forced)

    def skip(self, site: str, key: str, count: int) -> None:
        """Use up so many choices of a site and key whose values nobody needs."""
        self._stream(site, key).skip(count)

    def _stream(self, site: str, key: str) -> _Stream:
        stream = self._streams.get((site, key))
        if stream is None:
            stream = self._streams[site, key] = _Stream(self._seed_key, site, key)
        return stream

    def draw(self, site: str, key: str, n: int) -> int:
        """Call `choose` under the name that client ports use."""
        return self.choose(site, key, n)


class ChosenIds:
    """Random ids drawn from the choices of a run, distinct even on an all-neutral tape.

    Args:
        owner: Name of the drawer, such as `broker-1`; each owner has its own stream.
    """

    __slots__ = ("_choices", "_count", "_owner")

    def __init__(self, choices: Choices, owner: str) -> None:
        self._choices = choices
        self._owner = owner
        self._count = 0

    def new_uuid(self) -> str:
        """Return a random UUID, version 4, lower case with dashes."""
        high = self._choices.choose("uuid", self._owner, 1 << 60)
        low = self._choices.choose("uuid", self._owner, 1 << 60)
        self._count += 1
        node = (low + self._count) % (1 << 60)
        text = f"{high:015x}{node:015x}"
        return f"{text[:8]}-{text[8:12]}-4{text[12:15]}-a{text[15:18]}-{text[18:30]}"
