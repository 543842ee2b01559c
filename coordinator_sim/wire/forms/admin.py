"""Requests and responses that look at groups and delete them, as Kafka's fields."""

from typing import Final

from coordinator_sim.protocol.admin_messages import (
    NO_AUTHORIZED_OPERATIONS,
    DeletedGroup,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DescribedGroup,
    DescribedMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)
from coordinator_sim.wire.forms.form import Form, error_of
from coordinator_sim.wire.schema import Data


def _read_describe(data: Data, _version: int) -> DescribeGroupsRequest:
    return DescribeGroupsRequest(
        groups=tuple(data["groups"]),
        include_authorized_operations=data.get("includeAuthorizedOperations", False),
    )


def _write_describe(request: DescribeGroupsRequest, _version: int) -> Data:
    return {
        "groups": list(request.groups),
        "includeAuthorizedOperations": request.include_authorized_operations,
    }


def _read_described_member(entry: Data) -> DescribedMember:
    return DescribedMember(
        member_id=entry["memberId"],
        group_instance_id=entry.get("groupInstanceId"),
        client_id=entry["clientId"],
        client_host=entry["clientHost"],
        member_metadata=entry["memberMetadata"],
        member_assignment=entry["memberAssignment"],
    )


def _read_described(
    data: Data, _version: int, _request: DescribeGroupsRequest | None
) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(
        groups=tuple(
            DescribedGroup(
                group_id=group["groupId"],
                error_code=error_of(group),
                error_message=group.get("errorMessage"),
                group_state=group["groupState"],
                protocol_type=group["protocolType"],
                protocol_data=group["protocolData"],
                members=tuple(_read_described_member(entry) for entry in group["members"]),
                authorized_operations=group.get("authorizedOperations", NO_AUTHORIZED_OPERATIONS),
            )
            for group in data["groups"]
        )
    )


def _write_described_member(member: DescribedMember) -> Data:
    return {
        "memberId": member.member_id,
        "groupInstanceId": member.group_instance_id,
        "clientId": member.client_id,
        "clientHost": member.client_host,
        "memberMetadata": member.member_metadata,
        "memberAssignment": member.member_assignment,
    }


def _write_described(
    response: DescribeGroupsResponse, _version: int, _request: DescribeGroupsRequest | None
) -> Data:
    return {
        "groups": [
            {
                "errorCode": int(group.error_code),
                "errorMessage": group.error_message,
                "groupId": group.group_id,
                "groupState": group.group_state,
                "protocolType": group.protocol_type,
                "protocolData": group.protocol_data,
                "members": [_write_described_member(member) for member in group.members],
                "authorizedOperations": group.authorized_operations,
            }
            for group in response.groups
        ]
    }


def _read_list(data: Data, _version: int) -> ListGroupsRequest:
    return ListGroupsRequest(
        states_filter=tuple(data.get("statesFilter", ())),
        types_filter=tuple(data.get("typesFilter", ())),
    )


def _write_list(request: ListGroupsRequest, _version: int) -> Data:
    return {
        "statesFilter": list(request.states_filter),
        "typesFilter": list(request.types_filter),
    }


def _read_listed(
    data: Data, _version: int, _request: ListGroupsRequest | None
) -> ListGroupsResponse:
    return ListGroupsResponse(
        error_code=error_of(data),
        groups=tuple(
            ListedGroup(
                group_id=group["groupId"],
                protocol_type=group["protocolType"],
                group_state=group.get("groupState", ""),
                group_type=group.get("groupType", ""),
            )
            for group in data["groups"]
        ),
    )


def _write_listed(
    response: ListGroupsResponse, _version: int, _request: ListGroupsRequest | None
) -> Data:
    return {
        "errorCode": int(response.error_code),
        "groups": [
            {
                "groupId": group.group_id,
                "protocolType": group.protocol_type,
                "groupState": group.group_state,
                "groupType": group.group_type,
            }
            for group in response.groups
        ],
    }


def _read_delete(data: Data, _version: int) -> DeleteGroupsRequest:
    return DeleteGroupsRequest(groups_names=tuple(data["groupsNames"]))


def _write_delete(request: DeleteGroupsRequest, _version: int) -> Data:
    return {"groupsNames": list(request.groups_names)}


def _read_deleted(
    data: Data, _version: int, _request: DeleteGroupsRequest | None
) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(
        results=tuple(
            DeletedGroup(
                group_id=entry["groupId"],
                error_code=error_of(entry),
                error_message=entry.get("errorMessage"),
            )
            for entry in data["results"]
        )
    )


def _write_deleted(
    response: DeleteGroupsResponse, _version: int, _request: DeleteGroupsRequest | None
) -> Data:
    return {
        "results": [
            {
                "groupId": entry.group_id,
                "errorCode": int(entry.error_code),
                "errorMessage": entry.error_message,
            }
            for entry in response.results
        ]
    }


DESCRIBE_GROUPS: Final = Form(
    read_request=_read_describe,
    write_request=_write_describe,
    read_response=_read_described,
    write_response=_write_described,
)
LIST_GROUPS: Final = Form(
    read_request=_read_list,
    write_request=_write_list,
    read_response=_read_listed,
    write_response=_write_listed,
)
DELETE_GROUPS: Final = Form(
    read_request=_read_delete,
    write_request=_write_delete,
    read_response=_read_deleted,
    write_response=_write_deleted,
)
