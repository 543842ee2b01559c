"""Answers about groups of the new protocols as the words that a script compares, by API."""

from coordinator_sim_conformance.script.answers import Json, Naming, Words, error_name
from coordinator_sim_conformance.script.consumer_answers import CONSUMER_ANSWERS
from coordinator_sim_conformance.script.streams_answers import STREAMS_ANSWERS

_ANSWERS = {**CONSUMER_ANSWERS, **STREAMS_ANSWERS}


def is_of_new_groups(api: str) -> bool:
    """Whether the API is one of consumer, share or streams groups alone."""
    return api in _ANSWERS


def new_group_words(api: str, data: Json, named: Naming, first: int) -> Words:
    """Return the words of a reply; `error` is the top-level one, `first` the epoch `E`."""
    if "error" in data:
        return {"error": str(data["error"] or "NONE")}
    return {"error": error_name(data.get("errorCode", 0)), **_ANSWERS[api](data, named, first)}
