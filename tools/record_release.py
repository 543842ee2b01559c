"""Record what releases of Kafka say of themselves: API versions, features and settings.

    python -m tools.record_release 4.4 4.5=4.5.0

writes `coordinator_sim/kafka/releases/4.4` anew, and 4.5 from Kafka 4.5.0; without arguments all
that are there. API versions and features are the answer of a default broker that is started for
it, and of one with unstable versions enabled; settings come from the release's classes. Needs Java
and Maven.
"""

import argparse
import gzip
import re
import socket
import sys
import tempfile
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.api_versions import (
    LoweredVersions,
    RecordedVersions,
    UnstableVersions,
)
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.kafka.releases import Documentation, recorded_documentation
from coordinator_sim.messages.codec.frames import RequestHeader
from coordinator_sim_conformance.field_frames import read_response_frame, request_frame
from coordinator_sim_conformance.real_kafka.kafka import Broker
from coordinator_sim_conformance.real_kafka.settings_table import documentation_of, settings_of
from coordinator_sim_conformance.real_kafka.zookeeper_kafka import ZooKeeperBroker
from coordinator_sim_conformance.requirements import RELEASES

FOLDER: Final = Path(__file__).parents[1] / "coordinator_sim" / "kafka" / "releases"
DOCUMENTATION: Final = FOLDER / "documentation.jsonl.gz"
SILENT: Final = "0.10.2"
"""Profile whose DescribeConfigs, which it lacks, asks for no documentation."""
BEFORE_KRAFT: Final = ("0.10.2", "2.8")
LOWERED: Final = {"transaction.version": 0, "group.version": 0, "share.version": 0}
"""Levels of features below a release's own; the broker is asked once more with each."""

_RANGE: Final = re.compile(r"\[\s+(\d+),\s+(\d+)\s+\]")
_NEWEST_ASKED: Final = 4
_TIMEOUT_S: Final = 10


def _exactly(connection: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        more = connection.recv(size - len(received))
        if not more:
            raise ConnectionError("the broker closed the connection")
        received += more
    return received


def ask(bootstrap: str) -> dict[str, Any]:
    """Return the ApiVersions answer of a broker, in the newest version that it supports."""
    host, port = bootstrap.split(":")
    with socket.create_connection((host, int(port)), _TIMEOUT_S) as connection:
        answer = _ask_once(connection, _NEWEST_ASKED)
    if answer["errorCode"] == ErrorCode.UNSUPPORTED_VERSION:
        offered = {entry["apiKey"]: entry["maxVersion"] for entry in answer["apiKeys"]}
        with socket.create_connection((host, int(port)), _TIMEOUT_S) as connection:
            answer = _ask_once(connection, offered.get(ApiKey.API_VERSIONS, 0))
    return answer


def _ask_once(connection: socket.socket, version: int) -> dict[str, Any]:
    header = RequestHeader(
        api_key=ApiKey.API_VERSIONS, api_version=version, correlation_id=1, client_id="recorder"
    )
    software = {"clientSoftwareName": "recorder", "clientSoftwareVersion": "1"}
    frame = request_frame(header, software)
    connection.sendall(len(frame).to_bytes(4, "big") + frame)
    answer = _exactly(connection, int.from_bytes(_exactly(connection, 4), "big"))
    refused = int.from_bytes(answer[4:6], "big") == ErrorCode.UNSUPPORTED_VERSION
    layout = 0 if refused else version
    return read_response_frame(ApiKey.API_VERSIONS, layout, answer)[1]


def _booted(
    profile: str,
    version: str,
    features: Mapping[str, int],
    properties: dict[str, str] | None = None,
) -> dict[str, Any]:
    """Return the answer of a broker of that Kafka, started for this question."""
    with tempfile.TemporaryDirectory() as folder:
        if profile in BEFORE_KRAFT:
            with ZooKeeperBroker(Path(folder), version) as old:
                return ask(old.bootstrap)
        with Broker(Path(folder), properties, version, features) as broker:
            return ask(broker.bootstrap)


def _ranges(answer: dict[str, Any]) -> dict[int, tuple[int, int]]:
    return {
        entry["apiKey"]: (entry["minVersion"], entry["maxVersion"])
        for entry in sorted(answer["apiKeys"], key=lambda entry: int(entry["apiKey"]))
    }


def _supported(answer: dict[str, Any]) -> dict[str, tuple[int, int]]:
    return {
        entry["name"]: (entry["minVersion"], entry["maxVersion"])
        for entry in sorted(answer.get("supportedFeatures", []), key=lambda each: each["name"])
    }


def _finalized(answer: dict[str, Any]) -> dict[str, int]:
    return {
        entry["name"]: entry["maxVersionLevel"]
        for entry in sorted(answer.get("finalizedFeatures", []), key=lambda each: each["name"])
    }


def _unstable(profile: str, version: str, answer: dict[str, Any]) -> UnstableVersions | None:
    """Return what unstable versions change in an answer; None before KRaft."""
    if profile in BEFORE_KRAFT:
        return None
    apis, features = (
        _booted(profile, version, {}, {f"unstable.{kind}.versions.enable": "true"})
        for kind in ("api", "feature")
    )
    return UnstableVersions(
        ranges=dict(sorted(_ranges(apis).items() - _ranges(answer).items())),
        supported_features=dict(sorted(_supported(features).items() - _supported(answer).items())),
        finalized_features=dict(sorted(_finalized(features).items() - _finalized(answer).items())),
    )


def recorded(profile: str, version: str) -> RecordedVersions:
    """Return the versions of a Kafka, with its own features and each lowered set."""
    answer = _booted(profile, version, {})
    ranges = _ranges(answer)
    finalized = _finalized(answer)
    lowered = []
    for name, level in LOWERED.items():
        if finalized.get(name, level) == level:
            continue
        others = _ranges(_booted(profile, version, {name: level}))
        differing = {
            api: others.get(api)
            for api in sorted(ranges.keys() | others.keys())
            if others.get(api) != ranges.get(api)
        }
        lowered.append(LoweredVersions(features={name: level}, ranges=differing))
    return RecordedVersions(
        kafka_version=version,
        recorded_on=datetime.now(UTC).date().isoformat(),
        command=f"python -m tools.record_release {profile}={version}",
        ranges=ranges,
        supported_features=_supported(answer),
        finalized_features=finalized,
        lowered=tuple(lowered),
        unstable=_unstable(profile, version, answer),
    )


def record_documentation(profile: str, version: str) -> None:
    """Write the documentation of a release's settings; releases share a text that is equal."""
    texts: dict[tuple[str, str, str], list[str]] = {}
    for each in recorded_documentation() if DOCUMENTATION.exists() else ():
        texts[each.of, each.name, each.text] = [name for name in each.releases if name != profile]
    for line in documentation_of(version):
        fields = msgspec.json.decode(line)
        texts.setdefault((fields["of"], fields["name"], fields["text"]), []).append(profile)
    lines = [
        msgspec.json.encode(Documentation(*key, tuple(sorted(releases))))
        for key, releases in sorted(texts.items())
        if releases
    ]
    DOCUMENTATION.write_bytes(gzip.compress(b"\n".join(lines) + b"\n", mtime=0))
    recorded_documentation.cache_clear()


def _asked(text: str) -> tuple[str, str]:
    """Return profile and version of an argument: 4.5=4.5.0, or the name of a known profile.

    Raises:
        ArgumentTypeError: neither of the two.
    """
    profile, _, version = text.partition("=")
    version = version or RELEASES.get(profile, "")
    if not version.startswith(f"{profile}."):
        known = ", ".join(RELEASES)
        raise argparse.ArgumentTypeError(
            f"{text!r}: name a known release ({known}), or a new one with its version: 4.5=4.5.0"
        )
    return profile, version


def main(arguments: list[str] | None = None) -> None:
    """Record the releases that are named, or all of them."""
    parser = argparse.ArgumentParser(prog="python -m tools.record_release")
    parser.add_argument("releases", nargs="*", metavar="RELEASE[=VERSION]", type=_asked)
    options = parser.parse_args(arguments)
    for profile, version in options.releases or RELEASES.items():
        sys.stderr.write(f"{profile}: Kafka {version}\n")
        text = msgspec.json.format(msgspec.json.encode(recorded(profile, version)), indent=1)
        folder = FOLDER / profile
        folder.mkdir(exist_ok=True)
        one_line = _RANGE.sub(r"[\1, \2]", text.decode())
        (folder / "api_versions.json").write_text(one_line + "\n", "utf-8")
        settings = "\n".join(settings_of(version))
        (folder / "settings.jsonl").write_text(settings + "\n", "utf-8")
        if profile != SILENT:
            record_documentation(profile, version)


if __name__ == "__main__":
    main()
