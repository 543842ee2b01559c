"""Settings as responses show them: value, source, synonyms, type.

Source: kafka trunk, ConfigHelper.scala (createTopicConfigEntry, createBrokerConfigEntry,
createGroupConfigEntry); KafkaConfigSchema.resolveEffectiveTopicConfigs.
"""

from collections.abc import Mapping
from typing import Final

from coordinator_sim.broker.apis.client_metrics_configs import CLIENT_METRICS_SETTINGS
from coordinator_sim.broker.configs.configs import (
    Configs,
    ConfigSource,
    Synonym,
    base_name,
    shared_name,
)
from coordinator_sim.broker.configs.setting_types import (
    Setting,
    SettingType,
    Value,
    default_of,
    parse,
    text_of,
)
from coordinator_sim.kafka.orders.iteration_order import java_hash_order
from coordinator_sim.messages.create_topics import CreatableTopicConfigs
from coordinator_sim.messages.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsSynonym,
)

_TYPES: Final = {
    SettingType.BOOLEAN: 1,
    SettingType.STRING: 2,
    SettingType.INT: 3,
    SettingType.SHORT: 4,
    SettingType.LONG: 5,
    SettingType.DOUBLE: 6,
    SettingType.LIST: 7,
    SettingType.CLASS: 8,
    SettingType.PASSWORD: 9,
}
"""Kafka's number of each type. Source: DescribeConfigsResponse.ConfigType."""


Entry = DescribeConfigsResourceResult


def creation_entries(configs: Configs, own: Mapping[str, str]) -> tuple[CreatableTopicConfigs, ...]:
    """Every setting of a topic to be created, by name. Source: computeEffectiveTopicConfigs."""
    return tuple(
        CreatableTopicConfigs(
            name=each.name,
            value=own.get(each.name, each.value),
            read_only=False,
            config_source=ConfigSource.TOPIC if each.name in own else each.source,
            is_sensitive=each.is_secret,
        )
        for each in configs.topic_defaults()
    )


def topic_entries(
    configs: Configs, broker_id: int, topic: str, own: Mapping[str, str]
) -> list[Entry]:
    """Every setting of a topic at one broker; `synonyms` are complete."""
    entries: list[Entry] = []
    for name in configs.listed(configs.topic, own):
        setting = configs.topic[name]
        value = configs.topic_value_at(broker_id, topic, name)
        places = configs.synonyms(setting.synonym, broker_id) if setting.synonym else []
        if name in own:
            places = [Synonym(name, text_of(value) or "", ConfigSource.TOPIC), *places]
        entries.append(_entry(name, setting, value, places))
    return entries


def group_entries(
    configs: Configs, broker_id: int, group: str, own: Mapping[str, str]
) -> list[Entry]:
    """Every setting of a group at one broker; `synonyms` are complete."""
    entries: list[Entry] = []
    for name in configs.listed(configs.group, own):
        setting = configs.group[name]
        value = configs.group_value_at(broker_id, group, name)
        shared = shared_name(name)
        if shared in configs.broker:
            places = configs.synonyms(shared, broker_id)
        else:
            places = [Synonym(name, text_of(default_of(setting)) or "", ConfigSource.DEFAULT)]
        if not configs.profile.describes_group_synonyms:
            fallback = Synonym(name, text_of(value) or "", ConfigSource.DEFAULT)
            places = [] if name in own else [fallback]
        if name in own:
            places = [Synonym(name, text_of(value) or "", ConfigSource.GROUP), *places]
        entries.append(_entry(name, setting, value, places))
    return entries


def client_metrics_entries(configs: Configs, own: Mapping[str, str]) -> list[Entry]:
    """Every setting of a subscription to clients' metrics; `synonyms` are complete."""
    entries: list[Entry] = []
    for name in configs.listed(CLIENT_METRICS_SETTINGS, own):
        if not configs.profile.describes_client_metrics_defaults:
            if name in own:
                source = int(ConfigSource.CLIENT_METRICS)
                entries.append(Entry(name=name, value=own[name], config_source=source))
            continue
        setting = CLIENT_METRICS_SETTINGS[name]
        value = parse(setting, own.get(name, setting.default))
        source = ConfigSource.CLIENT_METRICS
        places = [Synonym(name, own[name], source)] if name in own else []
        entries.append(_entry(name, setting, value, places))
    return entries


def broker_entries(configs: Configs, broker_id: int) -> list[Entry]:
    """Every setting of one broker; `synonyms` are complete."""
    entries: list[Entry] = []
    for name in configs.listed(configs.broker, configs.set_names(broker_id)):
        setting = configs.broker.get(name)
        known = setting or configs.broker.get(base_name(name))
        places = configs.synonyms(name, broker_id)
        value = configs.own_value(name, broker_id) if setting else None
        if setting is None and known is not None and places:
            value = parse(known, places[0].value)
        entries.append(_entry(name, known, value, places, read_only=not _is_dynamic(setting)))
    return entries


def shared_entries(configs: Configs) -> list[Entry]:
    """Every dynamic default that clients set for all brokers; `synonyms` are complete."""
    shared = configs.shared()
    entries: list[Entry] = []
    for name in java_hash_order(shared):
        text = shared[name]
        setting = configs.broker.get(name)
        known = setting or configs.broker.get(base_name(name))
        value = parse(known, text) if known else text
        places = [
            each
            for each in configs.synonyms(name, None)
            if each.source is ConfigSource.DYNAMIC_DEFAULT_BROKER
        ]
        entries.append(_entry(name, known, value, places, read_only=not _is_dynamic(setting)))
    return entries


def _is_dynamic(setting: Setting | None) -> bool:
    return setting is not None and setting.dynamic


def _entry(
    name: str,
    setting: Setting | None,
    value: Value,
    places: list[Synonym],
    *,
    read_only: bool = False,
) -> Entry:
    """The entry of one setting; an unknown setting is sensitive, so its value is null.

    A setting of one listener has the type of the setting without the listener's name. Source:
    KafkaConfig.configType.
    """
    secret = setting is None or setting.is_secret
    source = places[0].source if places else ConfigSource.DEFAULT
    return Entry(
        name=name,
        value=None if secret else text_of(value),
        read_only=read_only,
        config_source=int(source),
        is_sensitive=secret,
        synonyms=tuple(
            DescribeConfigsSynonym(each.name, None if secret else each.value, int(each.source))
            for each in places
        ),
        config_type=0 if setting is None else _TYPES[setting.type],
        documentation=None,
    )
