"""What all tests share: the profiles of the property tests.

`--hypothesis-profile NAME` chooses one: `dev` (the default), `ci` (the same draws every time) or
`nightly`.
"""

import signal

import pytest
from hypothesis import HealthCheck, settings

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # What a shell starts in the background ignores Ctrl-C, and so would the processes of tests.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A scenario takes as long as its virtual time is eventful, so no example has a deadline.
settings.register_profile(
    "dev", max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "ci", settings.get_profile("dev"), max_examples=500, derandomize=True, print_blob=True
)
settings.register_profile("nightly", settings.get_profile("dev"), max_examples=20_000)
settings.load_profile("dev")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the flag that makes transcripts what they are observed to be."""
    parser.addoption(
        "--rewrite", action="store_true", help="rewrite the observed lines of transcripts"
    )
