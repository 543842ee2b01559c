"""UpdateFeatures: change the finalized levels of a cluster's features.

Source: kafka trunk, ControllerApis.handleUpdateFeatures; FeatureControlManager.updateFeatures,
updateFeature; ConfigurationControlManager.updateFeatures, maybeGenerateElrSafetyRecords;
ActivationRecordsGenerator.recordsForEmptyLog; QuorumController.updateFeatures and answers of
kafka 4.3.1 (texts).
"""

from collections.abc import Iterator
from typing import Final

from coordinator_sim.broker.cluster_parts import ClusterParts
from coordinator_sim.broker.configs.configs import ALL_BROKERS, Configs
from coordinator_sim.broker.configs.setting_types import parse, text_of
from coordinator_sim.broker.contract import Call, Handlers
from coordinator_sim.broker.implemented import ELR_VERSION, KRAFT_VERSION, METADATA_VERSION
from coordinator_sim.broker.metadata.changes import Change, ConfigsChanged, FeatureSet
from coordinator_sim.broker.metadata.image import BROKER_RESOURCE, MetadataImage
from coordinator_sim.broker.offered import offered_features
from coordinator_sim.broker.security.authorizer import Operation
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.api_versions import recorded_versions
from coordinator_sim.kafka.error_texts import error_message
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

MIN_ISR: Final = "min.insync.replicas"
_UPGRADE, _SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE = 1, 2, 3
_TYPED_SINCE: Final = 1
_FAILED: Final = "The update failed for all features since the following feature had an error: "


class FeaturesApi:
    """Moves features to other levels: all that a request names, or none.

    Args:
        cluster: The parts of the cluster.
    """

    def __init__(self, cluster: ClusterParts) -> None:
        self._cluster = cluster
        profile = cluster.settings.profile
        self._supported = offered_features(profile, cluster.configs).supported
        recorded = recorded_versions(profile)
        self._disabled = dict(recorded.supported_features)
        if recorded.unstable is not None:
            self._disabled.update(recorded.unstable.supported_features)

    def handlers(self) -> Handlers:
        """The handler of UpdateFeatures."""
        return {ApiKey.UPDATE_FEATURES: self._update}

    def _update(self, call: Call[UpdateFeaturesRequest]) -> UpdateFeaturesResponse:
        if not self._cluster.allows_cluster(call, Operation.ALTER):
            refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
            return UpdateFeaturesResponse(error_code=refused, error_message=None)
        # The last update of a feature wins.
        updates = {each.feature: each for each in call.request.feature_updates}
        for update in updates.values():
            text = self._complaint(call, update)
            if text is not None:
                invalid = ErrorCode.INVALID_UPDATE_VERSION
                return UpdateFeaturesResponse(error_code=invalid, error_message=_FAILED + text)
        for name, update in updates.items():
            level = update.max_version_level
            if call.request.validate_only or level == self._level(name):
                continue
            if name != KRAFT_VERSION or self._cluster.settings.profile.upgrades_kraft_version:
                for change in feature_changes(
                    name, level, self._cluster.configs, self._cluster.image
                ):
                    self._cluster.change(change)
        done = error_message(ErrorCode.NONE)
        results = tuple(
            UpdatableFeatureResult(feature=each, error_message=done) for each in updates
        )
        return UpdateFeaturesResponse(error_message=None, results=results)

    def _level(self, name: str) -> int:
        return self._cluster.image.features.get(name, 0)

    def _complaint(self, call: Call[UpdateFeaturesRequest], update: FeatureUpdateKey) -> str | None:
        """The error message of one update, in Kafka's words; None if the update is valid."""
        name, level = update.feature, update.max_version_level
        kind = _kind(call, update)
        text = self._refusal(name, level, kind)
        if text is not None:
            return f"Invalid update version {level} for feature {name}. {text}"
        if name == METADATA_VERSION and level < self._level(name):
            return (
                f"Unsupported metadata.version downgrade from {self._level(name)} to {level}. "
                "Refusing to perform the requested downgrade because it might delete metadata "
                "information."
            )
        return None

    def _refusal(self, name: str, level: int, kind: int) -> str | None:
        if kind not in {_UPGRADE, _SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE}:
            return "The controller does not support the given upgrade type."
        if level < 0:
            return "A feature version cannot be less than 0."
        text = self._unsupported(name, level)
        if text is not None:
            return text
        if level < self._level(name) and kind == _UPGRADE:
            return (
                "Can't downgrade the version of this feature without setting the upgrade type to "
                "either safe or unsafe downgrade."
            )
        if level > self._level(name) and kind != _UPGRADE:
            return "Can't downgrade to a newer version."
        if level < self._level(name) and name == KRAFT_VERSION:
            return "Can't downgrade the version of this feature."
        return None

    def _unsupported(self, name: str, level: int) -> str | None:
        """Why no such level is supported; a feature that is disabled supports level 0 alone."""
        controller = f"Local controller {min(self._cluster.settings.broker_ids)}"
        if name in self._supported:
            low, high = self._supported[name]
            is_known = low <= level <= high
            return None if is_known else f"{controller} only supports versions {low}-{high}"
        if level != 0:
            return f"{controller} does not support this feature."
        return None if name in self._disabled else f"Feature {name} not found."


def feature_changes(
    name: str, level: int, configs: Configs, image: MetadataImage
) -> Iterator[Change]:
    """The changes that finalize a level of a feature.

    Eligible leader replicas make `min.insync.replicas` a setting of the cluster, and of no broker.
    """
    if name == ELR_VERSION and level > 0:
        if MIN_ISR not in image.configs_of(BROKER_RESOURCE, ALL_BROKERS):
            setting = configs.broker[MIN_ISR]
            static = text_of(parse(setting, configs.given.get(MIN_ISR, setting.default)))
            yield ConfigsChanged(BROKER_RESOURCE, ALL_BROKERS, {MIN_ISR: static})
        for kind, broker in list(image.configs):
            if kind == BROKER_RESOURCE and broker and MIN_ISR in image.configs_of(kind, broker):
                yield ConfigsChanged(BROKER_RESOURCE, broker, {MIN_ISR: None})
    yield FeatureSet(name, level)


def _kind(call: Call[UpdateFeaturesRequest], update: FeatureUpdateKey) -> int:
    """The upgrade type of an update; version 0 only has a flag that allows a downgrade."""
    if call.context.api_version >= _TYPED_SINCE:
        return update.upgrade_type
    return _SAFE_DOWNGRADE if update.allow_downgrade else _UPGRADE
