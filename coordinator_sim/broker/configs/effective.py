"""Which broker settings change what a served cluster does; clients see the others and nothing more.

Names that tables of the code hold come from there. The literals are those that other modules read;
`tests/unit/broker/test_effective_settings.py` searches the code for them.
"""

from collections.abc import Iterable
from typing import Final

from coordinator_sim.broker.configs.configs import base_name, shared_name, synonym_names
from coordinator_sim.broker.configs.setting_types import settings_of
from coordinator_sim.broker.settings import PROPERTY_FIELDS
from coordinator_sim.coordinator.properties import PROPERTIES
from coordinator_sim.kafka.profiles import Profile
from coordinator_sim.log.log_config import LogConfig

READ_BY_NAME: Final = frozenset(
    {
        "advertised.listeners",
        "allow.everyone.if.no.acl.found",
        "authorizer.class.name",
        "broker.id",
        "connection.failed.authentication.delay.ms",
        "connections.max.idle.ms",
        "connections.max.reauth.ms",
        "controller.quota.window.num",
        "controller.quota.window.size.seconds",
        "delete.topic.enable",
        "errors.deadletterqueue.auto.create.topics.enable",
        "errors.deadletterqueue.topic.name.prefix",
        "fetch.max.bytes",
        "group.consumer.migration.policy",
        "group.coordinator.rebalance.protocols",
        "group.share.dlq.manager.class.name",
        "group.share.max.share.sessions",
        "group.share.persister.class.name",
        "group.streams.assignors",
        "group.streams.rack.aware.assignment.tags",
        "listener.security.protocol.map",
        "listeners",
        "log.cleaner.enable",
        "log.retention.check.interval.ms",
        "max.connections",
        "max.connections.per.ip",
        "max.connections.per.ip.overrides",
        "max.incremental.fetch.session.cache.slots",
        "max.request.partition.size.limit",
        "min.insync.replicas",
        "node.id",
        "producer.id.expiration.check.interval.ms",
        "producer.id.expiration.ms",
        "quota.consumer.default",
        "quota.producer.default",
        "quota.window.num",
        "quota.window.size.seconds",
        "sasl.enabled.mechanisms",
        "sasl.jaas.config",
        "sasl.server.max.receive.size",
        "share.coordinator.append.linger.ms",
        "share.coordinator.cold.partition.snapshot.interval.ms",
        "share.coordinator.snapshot.update.records.per.snapshot",
        "share.coordinator.state.topic.prune.interval.ms",
        "share.coordinator.write.timeout.ms",
        "socket.request.max.bytes",
        "ssl.client.auth",
        "ssl.enabled.protocols",
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.type",
        "ssl.principal.mapping.rules",
        "ssl.truststore.certificates",
        "ssl.truststore.type",
        "super.users",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        "transaction.max.timeout.ms",
        "transaction.partition.verification.enable",
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        "transaction.two.phase.commit.enable",
        "transactional.id.expiration.ms",
        "unstable.api.versions.enable",
        "unstable.feature.versions.enable",
    }
)
"""Settings that modules read by a literal."""
_COMPOSED: Final = {"ssl.keystore.location", "ssl.truststore.location"}
"""Settings whose names are put together where they are read."""
_BOUNDS: Final = (".min.", ".max.")


def without_effect(profile: Profile, names: Iterable[str]) -> list[str]:
    """The names that change nothing in this Kafka version, in their order."""
    topic, group = (settings_of(profile.name, of) for of in ("topic", "group"))
    effective = {*READ_BY_NAME, *_COMPOSED, *PROPERTY_FIELDS, *PROPERTIES}
    for field in LogConfig.__struct_fields__:
        setting = topic.get(field.replace("_", "."))
        if setting is not None and setting.synonym is not None:
            effective.update(synonym_names(setting.synonym))
    effective.update(map(shared_name, group))
    for name in sorted(effective):
        kind, _, rest = name.removeprefix("group.").partition(".")
        effective.update(f"group.{kind}{bound}{rest}" for bound in _BOUNDS)
    return [
        name
        for name in names
        if base_name(name) not in effective and not name.startswith("simulator.")
    ]
