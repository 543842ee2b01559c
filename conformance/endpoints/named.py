"""Endpoints by name: how each is started, and in which variants of its settings."""

import importlib.util
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from coordinator_sim import __version__
from coordinator_sim.broker.configs.setting_types import settings_of
from coordinator_sim.errors import DataError, needing
from coordinator_sim_conformance.endpoints.go_program import built_go_program
from coordinator_sim_conformance.endpoints.process import Server, started
from coordinator_sim_conformance.real_kafka.kafka import Broker, jars_of
from coordinator_sim_conformance.real_kafka.zookeeper_kafka import ZooKeeperBroker
from coordinator_sim_conformance.targets.asked import (
    DELAY,
    GROUP_SIZE,
    INTERVAL,
    LONGEST_SESSION,
    MEMBERS,
    MIGRATION,
    RETENTION,
    RETENTION_CHECK,
    SHARE_INTERVAL,
    SHARE_MEMBERS,
    SHORTEST_SESSION,
    STREAMS_DELAY,
    STREAMS_INTERVAL,
    VERIFIES,
    misfit,
)
from coordinator_sim_conformance.targets.target import Capability, has_groups

KFAKE: Final = Path(__file__).parent / "kfake"
"""Folder of the Go module that serves kfake."""
_ADDRESS: Final = re.compile(r"[\w.]+:\d+")

Settings = Mapping[str, str]
"""Broker settings by Kafka's names."""
Started = AbstractContextManager[Server]


class Variant(Struct, frozen=True, kw_only=True):
    """One way to start an endpoint.

    Args:
        name: Short name in messages.
        settings: Settings that it is started with.
        known: Settings that it has besides, and does not tell.
        newest: API -> newest version that it can read, where it offers more than that.
        lacks: Ids of cases whose outcome there is chance, and why.
    """

    name: str
    settings: dict[str, str] = {}
    known: dict[str, str] = {}
    newest: dict[str, int] = {}
    lacks: dict[str, str] = {}

    @property
    def has(self) -> dict[str, str]:
        """Settings that are known before it is asked."""
        return self.settings | self.known


class Named(Struct, frozen=True, kw_only=True):
    """An endpoint that the suite starts by name.

    Args:
        name: Name of the target.
        version: Version of what is started.
        profile: Profile that it is played as unless one is asked for.
        variants: Ways to start it; the first is for cases that ask for nothing.
        prepare: Gets ready whatever all variants need, in a folder; called once.
        start: Starts a variant: that folder, one of its own, its settings, and the profile to be.
        at_once: How many processes may run side by side when cases are played alone.
    """

    name: str
    version: str
    profile: str
    variants: tuple[Variant, ...]
    prepare: Callable[[Path], None]
    start: Callable[[Path, Path, Settings, str], Started]
    at_once: int = 12

    def variant_for(self, asked: Settings) -> Variant:
        """Return the first variant that has what a case asks for; the first of all if none has."""
        fitting = (each for each in self.variants if misfit(asked, each.has) is None)
        return next(fitting, self.variants[0])


_QUICK: Final = {DELAY: "0", SHORTEST_SESSION: "100"}
_VARIANTS: Final = (
    Variant(name="quick", settings=_QUICK),
    # Three times what most cases ask for: they are played so much more slowly.
    Variant(name="delayed", settings=_QUICK | {DELAY: "900", GROUP_SIZE: "4"}),
    Variant(name="expiring", settings=_QUICK | {RETENTION: "1", RETENTION_CHECK: "100"}),
    Variant(
        name="usual",
        settings={
            DELAY: "3000",
            SHORTEST_SESSION: "6000",
            RETENTION: str(2**31 - 1),
            RETENTION_CHECK: "100",
        },
    ),
)
"""Settings that cases ask for, in as few brokers as can be."""
_NEW_VARIANTS: Final = (
    Variant(
        name="full", settings=_QUICK | {MEMBERS: "2", SHARE_MEMBERS: "1", MIGRATION: "disabled"}
    ),
    Variant(name="downgrading", settings=_QUICK | {GROUP_SIZE: "1", MIGRATION: "downgrade"}),
)
"""Those that cases about the new protocols ask for."""
_AT_ONCE: Final = {
    INTERVAL: "0",
    SHARE_INTERVAL: "0",
    STREAMS_INTERVAL: "0",
    STREAMS_DELAY: "0",
}
"""Target assignments are computed without a wait, in releases where they may have to wait."""
_LATER: Final = {INTERVAL: "5000", STREAMS_DELAY: "3000"}
"""What cases about these waits ask for."""


def _with(variants: tuple[Variant, ...], **more: dict[str, str]) -> tuple[Variant, ...]:
    """Return the variants with further settings, or with more that is known of them."""
    return tuple(
        Variant(
            name=each.name,
            settings=each.settings | more.get("settings", {}),
            known=each.known | more.get("known", {}),
        )
        for each in variants
    )


# -- Apache Kafka --------------------------------------------------------------------------


@contextmanager
def _kafka(
    release: str, _shared: Path, folder: Path, settings: Settings, _profile: str
) -> Iterator[Server]:
    """A broker of a release with KRaft, or with ZooKeeper."""
    broker: Broker | ZooKeeperBroker
    if release in _WITH_ZOOKEEPER:
        broker = ZooKeeperBroker(folder, release, dict(settings))
    else:
        broker = Broker(folder, dict(settings), release)
    with broker:
        process = broker.process
        if process is None:
            raise DataError(f"Kafka {release} has no process")
        try:
            yield Server(bootstrap=broker.bootstrap, process=process, log=broker.log)
        finally:
            process.kill()  # Its data is thrown away: nothing has to be shut down in order.


def _jars(release: str, _folder: Path) -> None:
    jars_of(release)


_NO_VERIFYING: Final = {VERIFIES: "false"}
_WITH_ZOOKEEPER: Final = frozenset({"2.8.2"})
_RELEASES: Final = {
    "4.4.0": "4.4",
    "4.3.1": "4.3",
    "4.2.2": "4.2",
    "4.1.2": "4.1",
    "4.0.2": "4.0",
    "3.9.2": "3.9",
    "2.8.2": "2.8",
}
"""Release of Apache Kafka -> its profile."""
_NEWEST: Final = next(iter(_RELEASES))


def _variants_of(profile: str) -> tuple[Variant, ...]:
    """The variants of a broker that has the coordinator of Java, or of Scala."""
    if not has_groups(Capability.CONSUMER_GROUPS, profile):
        return _VARIANTS
    known = settings_of(profile, "broker")
    at_once = {name: value for name, value in _AT_ONCE.items() if name in known}
    later = {name: value for name, value in _LATER.items() if name in known}
    variants = (*_with(_VARIANTS, settings={MIGRATION: "bidirectional"}), *_NEW_VARIANTS)
    with_later = Variant(name="later targets", settings=_QUICK | at_once | later)
    return (*_with(variants, settings=at_once), *([with_later] if later else []))


def _released(release: str) -> Named:
    """Releases before 3.6 verify no partition, and know no such setting."""
    told = "known" if release in _WITH_ZOOKEEPER else "settings"
    return Named(
        name=f"kafka:{release}",
        version=release,
        profile=_RELEASES[release],
        variants=_with(_variants_of(_RELEASES[release]), **{told: _NO_VERIFYING}),
        prepare=partial(_jars, release),
        start=partial(_kafka, release),
        at_once=2,
    )


_DEFAULTS: Final = (Variant(name="defaults", settings={DELAY: "3000"}),)
"""A broker as most users have it; those that the suite starts have no initial delay otherwise."""


# -- kfake ---------------------------------------------------------------------------------


def _kfake_version() -> str:
    """The version in the module's file, such as `v0.0.0-20260918054303-01f206a7e32c`."""
    text = (KFAKE / "go.mod").read_text(encoding="utf-8")
    found = re.search(r"pkg/kfake (\S+)", text)
    return found[1] if found else ""


def _build_kfake(folder: Path) -> None:
    built_go_program(KFAKE, folder)


def _kfake(shared: Path, folder: Path, settings: Settings, _profile: str) -> Started:
    words = [f"{name}={value}" for name, value in settings.items() if name != DELAY]
    return started([str(shared / KFAKE.name), *words], folder, _plain_address)


def _plain_address(line: str) -> str | None:
    return line if _ADDRESS.fullmatch(line) else None


_KFAKE_LEAVES_TO_CHANCE: Final = {
    "PROTO-003": "a tie goes to any of the protocols, by the order of Go's maps (K13)",
} | dict.fromkeys(
    ("CG-044", "CG-050", "CG-052", "CG-092", "CG-175", "COMMIT-037"),
    "a topic that another case creates is a new epoch of its group, too",
)


def _kfake_variants() -> tuple[Variant, ...]:
    """The variants for kfake: no initial delay, and a longest session of 30 minutes."""
    found = []
    for each in _VARIANTS:
        settings = {name: value for name, value in each.settings.items() if name != DELAY}
        settings[LONGEST_SESSION] = "1800000"
        found.append(
            Variant(
                name=each.name, settings=settings, known={DELAY: "0"}, lacks=_KFAKE_LEAVES_TO_CHANCE
            )
        )
    return tuple(found)


# -- librdkafka's mock ---------------------------------------------------------------------


def _librdkafka_version() -> str:
    if importlib.util.find_spec("confluent_kafka") is None:
        return ""
    import confluent_kafka

    return str(confluent_kafka.libversion()[0])


def _require_confluent_kafka(_folder: Path) -> None:
    with needing("clients", "librdkafka-mock"):
        import confluent_kafka  # noqa: F401 - the process that is started uses it


def _librdkafka_mock(_shared: Path, folder: Path, _settings: Settings, _profile: str) -> Started:
    module = "coordinator_sim_conformance.endpoints.librdkafka_mock"
    return started([sys.executable, "-m", module], folder, _plain_address)


_MOCK_HAS: Final = {DELAY: "3000", LONGEST_SESSION: "1800000"}
"""What the mock does without being told; sessions of any length are taken."""
_MOCK_READS: Final = {"JoinGroup": 5, "SyncGroup": 3}
"""It offers the next version of these, and ends the connection of whoever sends it (L32)."""
_MOCK_LACKS: Final = dict.fromkeys(
    ("SYNC-020", "SYNC-021", "SYNC-PROTOCOL"),
    "wants SyncGroup of version 5; 3 is the newest that the mock reads",
) | dict.fromkeys(
    ("HB-014", "HB-015", "REB-013"),
    "sessions are looked at once a second, which may be soon enough or not",
)


def _mock_variant(name: str, shortest_session: str) -> Variant:
    known = _MOCK_HAS | {SHORTEST_SESSION: shortest_session}
    return Variant(name=name, known=known, newest=_MOCK_READS, lacks=_MOCK_LACKS)


# -- our own server ------------------------------------------------------------------------


def _nothing(_folder: Path) -> None:
    """Prepare nothing."""


def _served(_shared: Path, folder: Path, settings: Settings, profile: str) -> Started:
    known = settings_of(profile, "broker")
    given = {name: value for name, value in settings.items() if name in known}
    options = [word for name, value in given.items() for word in ("--set", f"{name}={value}")]
    command = [sys.executable, "-m", "coordinator_sim", "serve", "--port", "0", "--no-control"]
    return started([*command, "--profile", profile, *options], folder, _address_in_json)


def _address_in_json(line: str) -> str | None:
    try:
        return str(json.loads(line)["bootstrap"])
    except (ValueError, KeyError, TypeError):
        return None


NAMED: Final[dict[str, Named]] = {
    each.name: each
    for each in (
        *map(_released, _RELEASES),
        replace(
            _released(_NEWEST), name=f"kafka:{_NEWEST}:defaults", variants=_DEFAULTS, at_once=1
        ),
        Named(
            name="kfake",
            version=_kfake_version(),
            profile="4.4",
            variants=_kfake_variants(),
            prepare=_build_kfake,
            start=_kfake,
        ),
        Named(
            name="librdkafka-mock",
            version=_librdkafka_version(),
            profile="2.8",
            variants=(
                _mock_variant("quick", "100"),
                _mock_variant("usual", "6000"),
            ),
            prepare=_require_confluent_kafka,
            start=_librdkafka_mock,
        ),
        Named(
            name="serve:real-time",
            version=__version__,
            profile="4.4",
            variants=_with(_variants_of("4.4"), settings=_NO_VERIFYING),
            prepare=_nothing,
            start=_served,
        ),
        Named(
            name="serve:defaults",
            version=__version__,
            profile="4.4",
            variants=_DEFAULTS,
            prepare=_nothing,
            start=_served,
        ),
    )
}
"""Name of a target -> the endpoint that the suite starts."""
