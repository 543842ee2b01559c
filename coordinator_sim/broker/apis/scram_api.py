"""DescribeUserScramCredentials and AlterUserScramCredentials.

Source: kafka trunk, ControllerApis.handleAlterUserScramCredentials; ScramControlManager.java;
ScramImage.describe.
"""

from typing import Final

from coordinator_sim.broker.apis.administration import (
    NO_ERROR,
    ApiError,
    duplicates,
    told,
)
from coordinator_sim.broker.cluster_parts import ClusterParts
from coordinator_sim.broker.contract import Call, Handlers
from coordinator_sim.broker.metadata.changes import Change, ScramRemoved
from coordinator_sim.broker.security.authorizer import Operation
from coordinator_sim.broker.security.scram import (
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    SCRAM_NUMBERS,
    verifier,
)
from coordinator_sim.kafka.api_keys import ApiKey
from coordinator_sim.kafka.errors import ErrorCode
from coordinator_sim.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from coordinator_sim.messages.describe_user_scram_credentials import (
    CredentialInfo,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)

_TWICE: Final = ApiError(
    ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request"
)

_Entry = ScramCredentialDeletion | ScramCredentialUpsertion


class ScramApi:
    """Answers the two APIs of SCRAM credentials.

    Args:
        cluster: The parts of the cluster.
    """

    def __init__(self, cluster: ClusterParts) -> None:
        self._cluster = cluster

    def handlers(self) -> Handlers:
        """Handlers of the two APIs."""
        return {
            ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: self._describe,
            ApiKey.ALTER_USER_SCRAM_CREDENTIALS: self._alter,
        }

    # -- DescribeUserScramCredentials ------------------------------------------------------

    def _describe(
        self, call: Call[DescribeUserScramCredentialsRequest]
    ) -> DescribeUserScramCredentialsResponse:
        asked = call.request.users or ()
        if not self._cluster.allows_cluster(call, Operation.DESCRIBE):
            error = told(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
            return DescribeUserScramCredentialsResponse(
                error_code=error.code,
                error_message=error.message,
                results=tuple(_undescribed("", error) for _ in asked),
            )
        names = [user.name for user in asked] or [user for user, _ in self._cluster.image.scram]
        twice = duplicates(names) if asked else {}
        credentials = self._credentials(names)
        results = (
            _described(name, infos, is_twice=name in twice) for name, infos in credentials.items()
        )
        return DescribeUserScramCredentialsResponse(
            error_code=ErrorCode.NONE, error_message="", results=tuple(results)
        )

    def _credentials(self, names: list[str]) -> dict[str, list[CredentialInfo]]:
        """Mechanisms and iterations of each user; empty for a user without credentials."""
        found: dict[str, list[CredentialInfo]] = {name: [] for name in names}
        for (user, mechanism), known in self._cluster.image.scram.items():
            if user in found:
                found[user].append(CredentialInfo(mechanism, known.iterations))
        return found

    # -- AlterUserScramCredentials ---------------------------------------------------------

    def _alter(
        self, call: Call[AlterUserScramCredentialsRequest]
    ) -> AlterUserScramCredentialsResponse:
        """Alter credentials; a user with several entries is not altered at all."""
        asked: tuple[_Entry, ...] = (*call.request.deletions, *call.request.upsertions)
        if not self._cluster.allows_cluster(call, Operation.ALTER):
            refused = told(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
            return _results(dict.fromkeys(sorted(each.name for each in asked), refused))
        changes: dict[str, Change] = {}
        errors: dict[str, ApiError] = {}
        for entry in asked:
            name = entry.name
            if name in errors:
                continue
            decided = _TWICE if changes.pop(name, None) is not None else self._decided(entry)
            if isinstance(decided, ApiError):
                errors[name] = decided
            else:
                changes[name] = decided
        for change in changes.values():
            self._cluster.change(change)
        return _results(dict.fromkeys(changes, NO_ERROR) | errors)

    def _decided(self, entry: _Entry) -> Change | ApiError:
        if isinstance(entry, ScramCredentialUpsertion):
            return _upserted(entry)
        return self._deleted(entry)

    def _deleted(self, entry: ScramCredentialDeletion) -> Change | ApiError:
        name, mechanism = entry.name, entry.mechanism
        error = _name_error(name, mechanism)
        if error is not None:
            return error
        if (name, mechanism) not in self._cluster.image.scram:
            text = "Attempt to delete a user credential that does not exist"
            return ApiError(ErrorCode.RESOURCE_NOT_FOUND, text)
        return ScramRemoved(name, mechanism)


def _described(
    name: str, infos: list[CredentialInfo], *, is_twice: bool
) -> DescribeUserScramCredentialsResult:
    if is_twice:
        text = (
            f"Cannot describe SCRAM credentials for the same user twice in a single request: {name}"
        )
        return _undescribed(name, ApiError(ErrorCode.DUPLICATE_RESOURCE, text))
    if infos:
        return DescribeUserScramCredentialsResult(
            user=name, error_code=ErrorCode.NONE, error_message="", credential_infos=tuple(infos)
        )
    text = f"Attempt to describe a user credential that does not exist: {name}"
    return _undescribed(name, ApiError(ErrorCode.RESOURCE_NOT_FOUND, text))


def _undescribed(name: str, error: ApiError) -> DescribeUserScramCredentialsResult:
    return DescribeUserScramCredentialsResult(name, error.code, error.message)


def _upserted(entry: ScramCredentialUpsertion) -> Change | ApiError:
    name, iterations = entry.name, entry.iterations
    error = _name_error(name, entry.mechanism)
    if error is not None:
        return error
    if iterations < MIN_ITERATIONS:
        return ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
    if iterations > MAX_ITERATIONS:
        return ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
    mechanism = SCRAM_NUMBERS[entry.mechanism]
    return verifier(mechanism, name, entry.salted_password, salt=entry.salt, iterations=iterations)


def _name_error(name: str, mechanism: int) -> ApiError | None:
    if not name:
        return ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
    if mechanism not in SCRAM_NUMBERS:
        return ApiError(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
    return None


def _results(results: dict[str, ApiError]) -> AlterUserScramCredentialsResponse:
    return AlterUserScramCredentialsResponse(
        results=tuple(
            AlterUserScramCredentialsResult(name, error.code, error.message)
            for name, error in results.items()
        )
    )
