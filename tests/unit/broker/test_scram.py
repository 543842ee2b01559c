"""SCRAM: published vectors, and what is refused without a word too many."""

from base64 import b64decode

import pytest

from coordinator_sim.broker.metadata.changes import ScramSet
from coordinator_sim.broker.security import scram
from coordinator_sim.broker.security.sasl import SaslStep

SALT = b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
SERVER_NONCE = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
NONCE = "rOprNGfwEbeRWgbNEkqO" + SERVER_NONCE
FIRST = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
PROOF = "dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
FINAL = f"c=biws,r={NONCE},p={PROOF}".encode()
"""RFC 7677, section 3."""


def server(user: str = "user", iterations: int = scram.MIN_ITERATIONS) -> scram.ScramServer:
    """An exchange with one known user."""
    known = scram.verifier_of(scram.SCRAM_SHA_256, user, "pencil", salt=SALT, iterations=iterations)
    return scram.ScramServer(scram.SCRAM_SHA_256, {user: known}.get, SERVER_NONCE)


def test_exchange_is_that_of_the_rfc() -> None:
    """Both answers are the published ones, byte for byte."""
    exchange = server()

    challenge = exchange.take(FIRST)
    end = exchange.take(FINAL)

    assert challenge.token == f"r={NONCE},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()
    assert end.token == b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    assert end.user == "user"


@pytest.mark.parametrize(
    ("first", "final"),
    [
        (b"y,,n=user,r=abc", None),
        (b"n,,n=nobody,r=abc", None),
        (b"n,,n=us=er,r=abc", None),
        (b"\xff\x00", None),
        (FIRST, FINAL.replace(b"dHzb", b"AAAA")),
        (FIRST, FINAL.replace(b"rOpr", b"xxxx").replace(b"k0,", b"k1,")),
        (FIRST, b"c=biws,r=" + NONCE.encode() + b",p=AAAA"),
        (FIRST, b"nonsense"),
    ],
)
def test_refusal_tells_nothing(first: bytes, final: bytes | None) -> None:
    """A wrong name, a wrong proof and nonsense are refused alike, without a reason."""
    exchange = server()
    step = exchange.take(first)
    if final is not None:
        step = exchange.take(final)

    assert step == SaslStep(is_refused=True)


def test_user_of_too_few_iterations_is_refused() -> None:
    """A verifier below Kafka's bound is of no use."""
    assert server(iterations=1_000).take(FIRST).is_refused


def test_name_may_have_commas_and_equals_signs() -> None:
    """Both are written otherwise in SCRAM."""
    challenge = server("a,b=c").take(b"n,,n=a=2Cb=3Dc,r=abc")

    assert not challenge.is_refused


def test_client_may_not_act_for_another_user() -> None:
    """An authorization id is the user's own name or none."""
    step = server().take(b"n,a=other,n=user,r=abc")

    assert step.reason is not None
    assert "different from username" in step.reason


def test_verifier_shows_nothing_of_itself() -> None:
    """Neither keys nor salt are in its representation."""
    known: ScramSet = scram.verifier_of(scram.SCRAM_SHA_512, "alice", "secret", salt=b"salt")

    assert repr(known) == "ScramSet(user='alice', mechanism=2, ...)"
