"""Requests about what surrounds the resources of Connect's REST API, for real workers and ours.

Listeners, TLS, cross-origin requests, headers of responses, basic authentication, policies for
overrides of client settings, and providers of settings: a story is a worker's settings and the
requests that it is sent. `{folder}` stands for the folder that `written` fills.
"""

from base64 import b64encode
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

VARIABLE: Final = "COORDINATOR_SIM_STORY_TOPIC"
"""Environment variable that a provider reads; its value is `from-env`."""
_PROVIDERS: Final = "org.apache.kafka.common.config.provider."
EXTENSION: Final = "org.apache.kafka.connect.rest.basic.auth.extension."
_SOURCE: Final = "FileStreamSource"
_ALLOWED, _DENIED = "https://console.example", "https://other.example"
_ANY: Final = ("connection", "content-length", "date", "server", "transfer-encoding")
"""Headers that say nothing of the resource."""
_PRE: Final = {"access-control-request-method": "PUT"}


class Exchange(Struct, frozen=True, kw_only=True):
    """One request.

    Args:
        name: Unique in its story.
        listener: `public`, `https` or `admin`.
        body: A JSON object; None for no body.
    """

    name: str
    method: str = "GET"
    target: str = "/"
    listener: str = "public"
    headers: dict[str, str] = {}
    body: dict[str, object] | None = None


class Story(Struct, frozen=True, kw_only=True):
    """A worker's settings over those of its listeners, and the requests that it is sent."""

    settings: dict[str, str]
    exchanges: tuple[Exchange, ...]


def written(folder: Path) -> None:
    """Write the files that settings name: credentials, their login module, values, secrets."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "users.properties").write_text("alice = alice-secret\nbob: b\\u00fccher\n", "utf-8")
    (folder / "jaas.conf").write_text(
        "// the only entry\nKafkaConnect {\n"
        f'  {EXTENSION}PropertyFileLoginModule required file="{folder}/users.properties";\n}};\n',
        "utf-8",
    )
    (folder / "values.properties").write_text(
        "topic=from-file\ntasks=2\nwords=two\\ words\n", "utf-8"
    )
    secrets = folder / "secrets"
    secrets.mkdir(exist_ok=True)
    (secrets / "topic").write_text("from-directory", "utf-8")
    outside = folder / "outside"
    outside.mkdir(exist_ok=True)
    (outside / "values.properties").write_text("topic=from-outside\n", "utf-8")


def trimmed(exchange: Exchange, answer: dict[str, Any]) -> dict[str, Any]:
    """Return an answer without what a start of a JVM or an instant decides.

    Of validations the settings of the request are left, and those with errors, without definitions.
    """
    headers = {name: text for name, text in answer["headers"].items() if name not in _ANY}
    methods = headers.get("access-control-allow-methods")
    if methods is not None:
        headers["access-control-allow-methods"] = ",".join(sorted(methods.split(",")))
    if "expires" in headers:
        headers["expires"] = "{date}"
    body = answer["body"]
    if isinstance(body, dict) and "configs" in body:
        values = [each["value"] for each in body["configs"] if each["value"] is not None]
        body = {
            "error_count": body["error_count"],
            "configs": [
                [each["name"], each["value"], each["errors"]]
                for each in values
                if each["errors"] or each["name"] in (exchange.body or {})
            ],
        }
    if isinstance(body, dict) and "kafka_cluster_id" in body:
        body = sorted(body)
    return {"name": exchange.name, "status": answer["status"], "headers": headers, "body": body}


def _from_origin(
    name: str, origin: str, method: str = "GET", target: str = "/", **more: str
) -> Exchange:
    headers = {"origin": origin, **{key.replace("_", "-"): value for key, value in more.items()}}
    return Exchange(name=name, method=method, target=target, headers=headers)


def _validated(name: str, **settings: str) -> Exchange:
    config = {key.replace("__", "."): value for key, value in settings.items()}
    return Exchange(
        name=name,
        method="PUT",
        target=f"/connector-plugins/{_SOURCE}/config/validate",
        headers={"content-type": "application/json"},
        body={"name": "c", "connector.class": _SOURCE, "topic": "t", **config},
    )


def _created(name: str, **settings: str) -> Exchange:
    config = {key.replace("__", "."): value for key, value in settings.items()}
    return Exchange(
        name=name,
        method="POST",
        target="/connectors",
        headers={"content-type": "application/json"},
        body={"name": name, "config": {"connector.class": _SOURCE, "topic": "t", **config}},
    )


def _basic(name: str, credentials: str, *, scheme: str = "Basic", target: str = "/") -> Exchange:
    text = f"{scheme} {b64encode(credentials.encode()).decode()}"
    return Exchange(name=name, target=target, headers={"authorization": text})


def _preflight(
    name: str, origin: str, *, listener: str = "public", target: str = "/connectors"
) -> Exchange:
    headers = {"origin": origin, **_PRE}
    return Exchange(name=name, method="OPTIONS", target=target, listener=listener, headers=headers)


_OPEN: Final = Story(
    settings={
        "access.control.allow.origin": f"{_ALLOWED}, http://[a-z]+\\.example\\.org",
        "access.control.allow.methods": "GET,PUT,DELETE",
        "response.http.headers.config": (
            'set X-Frame-Options:DENY, "add Cache-Control: no-cache, no-store", '
            "add Cache-Control:must-revalidate, setDate Expires: 0"
        ),
        "rest.advertised.listener": "https",
        "rest.advertised.host.name": "connect.example",
        "connector.client.config.override.policy": "None",
        "config.providers": "file,directory,env",
        "config.providers.file.class": f"{_PROVIDERS}FileConfigProvider",
        "config.providers.file.param.allowed.paths": "{folder}/values.properties,{folder}/secrets",
        "config.providers.directory.class": f"{_PROVIDERS}DirectoryConfigProvider",
        "config.providers.env.class": f"{_PROVIDERS}EnvVarConfigProvider",
        "config.providers.env.param.allowlist.pattern": "COORDINATOR_SIM_.*",
        "offset.flush.timeout.ms": "${file:{folder}/values.properties:tasks}000",
    },
    exchanges=(
        Exchange(name="no origin"),
        _from_origin("allowed origin", _ALLOWED),
        _from_origin("allowed origin, other case", _ALLOWED.upper()),
        _from_origin("origin of the pattern", "http://a.example.org"),
        _from_origin("more than the pattern", "http://a.example.org.evil"),
        _from_origin("two origins, one allowed", f"{_DENIED} {_ALLOWED}"),
        _from_origin("another origin", _DENIED),
        _from_origin("nowhere", _ALLOWED, target="/nowhere"),
        _from_origin("another method", _ALLOWED, "DELETE"),
        _from_origin("head", _ALLOWED, "HEAD"),
        _from_origin("ambiguous path", _ALLOWED, target="/connectors/a%2Fb"),
        _preflight("preflight", _ALLOWED),
        _preflight("preflight of another origin", _DENIED),
        _preflight("preflight to nowhere", _ALLOWED, target="/nowhere"),
        _from_origin("options without a method", _ALLOWED, "OPTIONS", "/connectors"),
        Exchange(name="loggers in public", target="/admin/loggers"),
        Exchange(name="over TLS", listener="https"),
        Exchange(name="over TLS with an origin", listener="https", headers={"origin": _ALLOWED}),
        Exchange(name="loggers over TLS", listener="https", target="/admin/loggers"),
        Exchange(name="logger for admins", listener="admin", target="/admin/loggers/no.such"),
        Exchange(name="connectors for admins", listener="admin", target="/connectors"),
        Exchange(name="root for admins", listener="admin"),
        _preflight("preflight for admins", _ALLOWED, listener="admin", target="/admin/loggers"),
        _validated("an override", producer__override__linger__ms="5"),
        _validated("an override of no client's", producer__override__my__own="5"),
        _validated("an override of admins", admin__override__retries="5"),
        _validated("overrides of a sink's", consumer__override__group__id="g"),
        _created("overridden", producer__override__linger__ms="5"),
        _validated("file", topic="${file:{folder}/values.properties:topic}"),
        _validated(
            "file, twice in a value",
            topic="${file:{folder}/values.properties:topic}-${file:{folder}/values.properties:words}",
        ),
        _validated("file, of a number", tasks__max="${file:{folder}/values.properties:tasks}"),
        _validated("file, of words", tasks__max="${file:{folder}/values.properties:topic}"),
        _validated("file, no such key", tasks__max="${file:{folder}/values.properties:other}"),
        _validated(
            "file, not allowed", tasks__max="${file:{folder}/outside/values.properties:topic}"
        ),
        _validated("file, none", tasks__max="${file:{folder}/secrets/none:topic}"),
        _validated("file, without a path", tasks__max="${file:topic}"),
        _validated("directory", tasks__max="${directory:{folder}/secrets:topic}"),
        _validated("directory, none", tasks__max="${directory:{folder}/none:topic}"),
        _validated("environment", tasks__max="${env:" + VARIABLE + "}"),
        _validated("environment, not allowed", tasks__max="${env:PATH}"),
        _validated("environment, with a path", tasks__max="${env:x:" + VARIABLE + "}"),
        _validated("another provider", tasks__max="${vault:x:topic}"),
        _created("referring", topic="${file:{folder}/values.properties:topic}"),
        Exchange(name="as it was written", target="/connectors/referring/config"),
        _created("without a file", topic="${file:{folder}/secrets/none:topic}"),
    ),
)
_GUARDED: Final = Story(
    settings={
        "access.control.allow.origin": "*",
        "rest.extension.classes": f"{EXTENSION}BasicAuthSecurityRestExtension",
    },
    exchanges=(
        Exchange(name="no credentials"),
        _basic("alice", "alice:alice-secret"),
        _basic("bob", "bob:b\u00fccher"),
        _basic("another password", "alice:bob"),
        _basic("another user", "carol:alice-secret"),
        _basic("no user", ":alice-secret"),
        _basic("no colon", "alice"),
        _basic("scheme in small letters", "alice:alice-secret", scheme="basic"),
        _basic("another scheme", "alice:alice-secret", scheme="Bearer"),
        Exchange(name="one word", headers={"authorization": "Basic"}),
        Exchange(name="no base64", headers={"authorization": "Basic ???"}),
        Exchange(name="nowhere", target="/nowhere"),
        Exchange(name="another method", method="DELETE"),
        Exchange(name="health", target="/health"),
        Exchange(name="loggers", target="/admin/loggers"),
        Exchange(
            name="tasks of a worker",
            method="POST",
            target="/connectors/c/tasks",
            headers={"content-type": "application/json"},
            body={},
        ),
        Exchange(
            name="fence of a worker",
            method="PUT",
            target="/connectors/c/fence",
            headers={"content-type": "application/json"},
        ),
        Exchange(name="options", method="OPTIONS", target="/connectors"),
        _preflight("preflight", _DENIED),
        _from_origin("any origin", _DENIED),
    ),
)
_LISTED: Final = "connector.client.config.override.allowlist"
_OVERRIDES: Final = (
    _validated(
        "mechanism and linger",
        producer__override__sasl__mechanism="PLAIN",
        producer__override__linger__ms="5",
    ),
    _validated("acks", producer__override__acks="1"),
    _created("lingering", producer__override__linger__ms="5"),
)
STORIES: Final = {
    "open": _OPEN,
    "guarded": _GUARDED,
    "principal": Story(
        settings={"connector.client.config.override.policy": "Principal"}, exchanges=_OVERRIDES
    ),
    "allowlist": Story(
        settings={
            "connector.client.config.override.policy": "Allowlist",
            _LISTED: "acks,linger.ms",
        },
        exchanges=_OVERRIDES,
    ),
    "all": Story(settings={}, exchanges=_OVERRIDES),
}
