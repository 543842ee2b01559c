"""Names of groups and topics: a script's own, and those on an endpoint that others use too."""

import re
from collections.abc import Callable, Mapping
from typing import Final

from coordinator_sim_conformance.script import consumer_blobs
from coordinator_sim_conformance.targets.target import Json

Made = Callable[[str], str]
"""Makes the endpoint's name of a script's."""

_ONE_GROUP: Final = frozenset({"groupId", "key", "resourceName"})
_GROUPS: Final = frozenset({"groups", "groupsNames", "coordinatorKeys", "groupIds"})
_TOPICS: Final = frozenset({"topicName", "subscribedTopicNames", "sourceTopics"})
_NAMED_TOPICS: Final = frozenset({"topics", "topicData", "v3AndBelowTopics"})
"""Lists whose entries have the name of a topic."""
_TRANSACTIONAL: Final = frozenset({"transactionalId", "v3AndBelowTransactionalId"})
_TEXTS: Final = frozenset({"errorMessage", "statusDetail"})
"""Fields in which a broker names groups and topics among other words."""
_REGEX: Final = "subscribedTopicRegex"


class Names:
    """The groups and topics of one case.

    Args:
        prefix: How the endpoint's names begin.
    """

    def __init__(self, prefix: str) -> None:
        self.prefix = prefix
        self.groups: dict[str, str] = {}
        self.topics: dict[str, str] = {}

    def there(self, data: Json, *, group: Made, topic: Made) -> Json:
        """Return a request with the endpoint's names; new ones are made."""

        def group_named(name: str) -> str:
            if name not in self.groups:
                self.groups[name] = group(name)
            return self.groups[name]

        def topic_named(name: str) -> str:
            return self.topic(name, topic)

        if data.get("keyType", 0):
            return data
        renamed: Json = _renamed(data, "", group_named, topic_named, str)
        for protocol in renamed.get("protocols", ()):
            told = protocol["metadata"]
            protocol["metadata"] = consumer_blobs.renamed_subscription(told, topic_named)
        for entry in renamed.get("assignments", ()):
            told = entry["assignment"]
            entry["assignment"] = consumer_blobs.renamed_assignment(told, topic_named)
        for field in _TRANSACTIONAL & renamed.keys():
            if renamed[field] is not None:
                renamed[field] = f"{self.prefix}{renamed[field]}"
        if renamed.get(_REGEX):
            renamed[_REGEX] = f"{self.prefix}{renamed[_REGEX]}"
        return renamed

    def topic(self, name: str, made: Made) -> str:
        """Return the endpoint's name of a topic; a new one is made."""
        if name not in self.topics:
            self.topics[name] = made(name)
        return self.topics[name]

    def here(self, data: Json, *, hosts: Mapping[str, str]) -> Json:
        """Return an answer with the script's names.

        Groups of others are left out of lists, and hosts are named as the script names them.
        """
        groups = {there: here for here, there in self.groups.items()}
        topics = {there: here for here, there in self.topics.items()}
        answer: Json = _renamed(
            data,
            "",
            lambda name: groups.get(name, name),
            lambda name: topics.get(name, name),
            lambda text: _text_with(groups | topics, text),
        )
        if isinstance(answer.get("assignment"), str):
            answer["assignment"] = consumer_blobs.renamed_assignment(
                answer["assignment"], lambda name: topics.get(name, name)
            )
        if "groups" in answer:
            answer["groups"] = [
                each
                for each in answer["groups"]
                if not _is_listed(each) or each["groupId"] in self.groups
            ]
        for each in answer.get("groups", ()):
            for member in each.get("members", ()):
                member["clientHost"] = hosts.get(member["clientHost"], member["clientHost"])
        return answer


def _is_listed(group: Json) -> bool:
    """Whether an entry is of ListGroups: it has no members, no topics."""
    return "members" not in group and "topics" not in group


def _text_with(names: Mapping[str, str], text: str) -> str:
    """Return a text with every name in it replaced, the longest of several that begin alike."""
    longest_first = sorted(filter(None, names), key=len, reverse=True)
    if not longest_first:
        return text
    pattern = "|".join(map(re.escape, longest_first))
    return re.sub(pattern, lambda found: names[found[0]], text)


def _renamed(value: Json, field: str, group: Made, topic: Made, text: Made) -> Json:
    match value:
        case dict():
            return {
                name: topic(each)
                if name == "name" and field in _NAMED_TOPICS
                else _renamed(each, name, group, topic, text)
                for name, each in value.items()
            }
        case list():
            return [_renamed(each, field, group, topic, text) for each in value]
        case str() if field in _ONE_GROUP or field in _GROUPS:
            return group(value)
        case str() if field in _TOPICS:
            return topic(value)
        case str() if field in _TEXTS:
            return text(value)
    return value
