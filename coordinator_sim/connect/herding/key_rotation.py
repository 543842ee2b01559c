"""When the leader writes a new session key, and which key it writes.

Source: kafka trunk, connect/runtime/.../distributed/DistributedHerder.java, checkForKeyRotation and
its use in tick.
"""

from coordinator_sim.clients.config import ConnectProtocolCompatibility
from coordinator_sim.clients.network import FOREVER
from coordinator_sim.connect.exceptions import JavaException
from coordinator_sim.connect.herding.config_topic import write_to_config_topic_as_leader
from coordinator_sim.connect.herding.herder_state import HerderState
from coordinator_sim.connect.rest.signatures import key_size_bytes
from coordinator_sim.connect.stores.config_records import SessionKey
from coordinator_sim.connect.thread import Blocking


def is_request_validation_enabled(herder: HerderState) -> bool:
    """Whether internal requests are signed: only under the sessioned protocol."""
    protocol = herder.member.coordinator.connect_protocol
    return protocol >= ConnectProtocolCompatibility.SESSIONED


def check_for_key_rotation(herder: HerderState, now_ms: int) -> bool:
    """Whether this worker is to write a new session key now."""
    stored = herder.config_state.session_key
    if herder.session_key is None and stored is not None:
        # QUIRK: a key read at start-up takes effect only here, so a new leader answers 503 to
        # requests that reach it before this point of its first tick; and that key expires even if
        # keys are told never to (ttl 0): then it is replaced at once.
        herder.session_key = stored
        ttl_ms = herder.config.key_ttl_ms
        herder.key_expiration_ms = stored.creation_timestamp_ms + ttl_ms
    if not is_request_validation_enabled(herder) or not herder.is_leader:
        return False
    key = herder.session_key
    return (
        key is None
        or herder.key_expiration_ms <= now_ms
        or key.algorithm != herder.config.key_algorithm
        or len(key.key) != _key_size_bytes(herder)
    )


def _key_size_bytes(herder: HerderState) -> int:
    return key_size_bytes(herder.config.key_algorithm, herder.config.key_size_bits)


def distribute_new_key(herder: HerderState, now_ms: int) -> Blocking[bool]:
    """Write a new session key; return whether the write succeeded.

    If not, the config topic is read to its end before anything else.
    """
    herder.key_expiration_ms = FOREVER
    key = SessionKey(
        key=herder.random_bytes(_key_size_bytes(herder)),
        algorithm=herder.config.key_algorithm,
        creation_timestamp_ms=now_ms,
    )
    try:
        yield from write_to_config_topic_as_leader(
            herder,
            "writing a new session key to the config topic",
            herder.config_store.put_session_key(key),
        )
    except JavaException:
        herder.can_read_configs = False
        return False
    return True
