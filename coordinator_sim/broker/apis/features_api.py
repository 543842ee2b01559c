"""UpdateFeatures: change the finalized levels of a cluster's features.

Source: kafka trunk, ControllerApis.handleUpdateFeatures; FeatureControlManager.updateFeatures,
updateFeature; QuorumController.updateFeatures and answers of kafka 4.3.1 (texts).
"""

from typing import Final

from coordinator_sim.broker.apis.administration import Administration
from coordinator_sim.broker.contract import Call, Handlers
from coordinator_sim.broker.metadata.changes import FeatureSet
from coordinator_sim.broker.offered import offered_features
from coordinator_sim.broker.security.authorizer import Operation
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.error_texts import error_message
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

_METADATA: Final = "metadata.version"
_UPGRADE, _SAFE_DOWNGRADE, _UNSAFE_DOWNGRADE = 1, 2, 3
_TYPED_SINCE: Final = 1
_FAILED: Final = "The update failed for all features since the following feature had an error: "


class FeaturesApi:
    """Moves features to other levels: all that a request names, or none.

    Args:
        admin: The cluster.
    """

    __slots__ = ("_admin", "_supported")

    def __init__(self, admin: Administration) -> None:
        self._admin = admin
        self._supported = offered_features(admin.settings.profile).supported

    def handlers(self) -> Handlers:
        """The handler of UpdateFeatures."""
        return {ApiKey.UPDATE_FEATURES: self._update}

    def _update(self, call: Call[UpdateFeaturesRequest]) -> UpdateFeaturesResponse:
        if not self._admin.allows_cluster(call, Operation.ALTER):
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
            if not call.request.validate_only and level != self._level(name):
                self._admin.change(FeatureSet(name, level))
        done = error_message(ErrorCode.NONE)
        results = tuple(
            UpdatableFeatureResult(feature=each, error_message=done) for each in updates
        )
        return UpdateFeaturesResponse(error_message=None, results=results)

    def _level(self, name: str) -> int:
        return self._admin.image.features.get(name, 0)

    def _complaint(self, call: Call[UpdateFeaturesRequest], update: FeatureUpdateKey) -> str | None:
        """The error message of one update, in Kafka's words; None if the update is valid."""
        name, level = update.feature, update.max_version_level
        kind = _kind(call, update)
        text = self._refusal(name, level, kind)
        if text is not None:
            return f"Invalid update version {level} for feature {name}. {text}"
        if name == _METADATA and level < self._level(name):
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
        controller = f"Local controller {min(self._admin.settings.broker_ids)}"
        if name not in self._supported:
            return f"{controller} does not support this feature."
        low, high = self._supported[name]
        if not low <= level <= high:
            return f"{controller} only supports versions {low}-{high}"
        if level < self._level(name) and kind == _UPGRADE:
            return (
                "Can't downgrade the version of this feature without setting the upgrade type to "
                "either safe or unsafe downgrade."
            )
        if level > self._level(name) and kind != _UPGRADE:
            return "Can't downgrade to a newer version."
        return None


def _kind(call: Call[UpdateFeaturesRequest], update: FeatureUpdateKey) -> int:
    """The upgrade type of an update; version 0 only has a flag that allows a downgrade."""
    if call.context.api_version >= _TYPED_SINCE:
        return update.upgrade_type
    return _SAFE_DOWNGRADE if update.allow_downgrade else _UPGRADE
