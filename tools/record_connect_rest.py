"""Record what real Connect workers answer to the stories of `real_kafka/rest_story`.

    python -m tools.record_connect_rest

writes `tests/data/connect_rest/STORY.json`, a list of answers in the order of the requests.
"""

import json
import os
import ssl
import subprocess
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import httpx

from coordinator_sim_conformance.real_kafka.connect import RealWorker
from coordinator_sim_conformance.real_kafka.kafka import TOOLS_VERSION, Broker, free_ports
from coordinator_sim_conformance.real_kafka.rest_story import (
    STORIES,
    VARIABLE,
    Exchange,
    trimmed,
    written,
)

FOLDER: Final = Path(__file__).parents[1] / "tests" / "data" / "connect_rest"
_PASSWORD: Final = "changeit"  # noqa: S105 - of a key store that is thrown away


def transcript(name: str, folder: Path, bootstrap: str) -> list[dict[str, Any]]:
    """Return the answers of a new worker to a story."""
    written(folder)
    http, https, admin = (free_ports()[0] for _ in range(3))
    os.environ[VARIABLE] = "from-env"
    os.environ["JAVA_TOOL_OPTIONS"] = f"-Djava.security.auth.login.config={folder}/jaas.conf"
    settings = {"listeners": f"http://127.0.0.1:{http},https://127.0.0.1:{https}", **_tls(folder)}
    story = STORIES[name]
    if name == "open":
        settings["admin.listeners"] = f"http://127.0.0.1:{admin}"
    own = {key: value.replace("{folder}", str(folder)) for key, value in story.settings.items()}
    worker = RealWorker(folder / "worker", bootstrap, f"rest-{name}", {**settings, **own})
    worker.port = http
    urls = {
        "public": f"http://127.0.0.1:{http}",
        "https": f"https://127.0.0.1:{https}",
        "admin": f"http://127.0.0.1:{admin}",
    }
    with worker, httpx.Client(verify=_unverified(), trust_env=False, timeout=60) as client:
        return [
            trimmed(each, _answer(client, urls[each.listener], each, str(folder)))
            for each in story.exchanges
        ]


def _answer(client: httpx.Client, url: str, exchange: Exchange, folder: str) -> dict[str, Any]:
    body = None
    if exchange.body is not None:
        body = json.dumps(exchange.body).replace("{folder}", folder)
    request = client.build_request(
        exchange.method, url + exchange.target, headers=exchange.headers, content=body
    )
    answer = client.send(request)
    headers = {name: text.replace(url, "{url}") for name, text in answer.headers.items()}
    text = answer.text.replace(folder, "{folder}")
    is_json = text.startswith(('{"', "["))
    return {
        "status": answer.status_code,
        "headers": headers,
        "body": json.loads(text) if is_json else text,
    }


def _tls(folder: Path) -> dict[str, str]:
    """Make a key store with a certificate of its own, and return the settings that name it."""
    store = folder / "worker.p12"
    command = [
        "keytool",
        "-genkeypair",
        "-alias",
        "worker",
        "-keyalg",
        "EC",
        "-storetype",
        "PKCS12",
    ]
    command += ["-keystore", str(store), "-storepass", _PASSWORD, "-dname", "CN=localhost"]
    command += ["-ext", "san=ip:127.0.0.1"]
    subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - the JDK's own tool
    return {
        "listeners.https.ssl.keystore.location": str(store),
        "listeners.https.ssl.keystore.type": "PKCS12",
        "listeners.https.ssl.keystore.password": _PASSWORD,
        "listeners.https.ssl.key.password": _PASSWORD,
    }


def _unverified() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


def main() -> None:
    """Record all stories."""
    FOLDER.mkdir(exist_ok=True)
    with ExitStack() as running:
        root = Path(running.enter_context(tempfile.TemporaryDirectory()))
        broker = running.enter_context(Broker(root / "broker", version=TOOLS_VERSION))
        for name in STORIES:
            answers = transcript(name, root / name, broker.bootstrap)
            lines = ",\n".join(json.dumps(each, ensure_ascii=False) for each in answers)
            (FOLDER / f"{name}.json").write_text(f"[\n{lines}\n]\n", "utf-8")


if __name__ == "__main__":
    main()
