"""The verbs about the network between clients and brokers."""

from itertools import product

from coordinator_sim.server.control.control import Control
from coordinator_sim.server.control.link_models import LinkReset, LinkView, ResetLink, SetLink
from coordinator_sim.server.control.requests import ControlRequest, NotFound
from coordinator_sim.server.links import Link


def list_links(control: "Control", _: ControlRequest) -> tuple[LinkView, ...]:
    """Every link of a listener to a broker, and what it lets through."""
    return _views(control, list(control.server.endpoints))


def set_link(control: "Control", request: ControlRequest) -> tuple[LinkView, ...]:
    """Cut links, make them slow or narrow, or whole again; connections stay open."""
    wanted: SetLink = request.body
    found = _meant(control, wanted.broker, wanted.listener)
    link = Link(cut=wanted.cut, to_broker=wanted.to_broker, to_clients=wanted.to_clients)
    for broker_id, listener in found:
        control.server.set_link(broker_id, listener, link)
        control.tell("broker", "LINKED", broker_id, listener=listener, cut=wanted.cut)
    return _views(control, found)


def reset_link(control: "Control", request: ControlRequest) -> LinkReset:
    """Reset the open connections of links, as a firewall or a failing host does."""
    wanted: ResetLink = request.body
    found = _meant(control, wanted.broker, wanted.listener)
    return LinkReset(connections=sum(control.server.reset_link(*each) for each in found))


def _meant(control: Control, broker_id: int | None, listener: str | None) -> list[tuple[int, str]]:
    """The links of a broker, or of all; on a listener, or on all."""
    brokers = [broker_id] if broker_id is not None else list(control.cluster.settings.broker_ids)
    names = list(dict.fromkeys(name for _, name in control.server.endpoints))
    wanted = names if listener is None else [listener.upper()]
    known = control.server.endpoints
    for each in product(brokers, wanted):
        if each not in known:
            raise NotFound(
                f"there is no broker {each[0]} with a listener {each[1]}; brokers are "
                f"{', '.join(map(str, control.cluster.settings.broker_ids))}, listeners "
                f"{', '.join(names)}"
            )
    return list(product(brokers, wanted))


def _views(control: Control, places: list[tuple[int, str]]) -> tuple[LinkView, ...]:
    links, endpoints = control.server.links, control.server.endpoints
    open_ones = [(each.broker_id, each.listener) for each in control.server.connections()]
    found: list[LinkView] = []
    for broker_id, listener in sorted(places):
        link, at = links.get((broker_id, listener), Link()), endpoints[broker_id, listener]
        found.append(
            LinkView(
                broker_id=broker_id,
                listener=listener,
                host=at.host,
                port=at.port,
                connections=open_ones.count((broker_id, listener)),
                cut=link.cut,
                to_broker=link.to_broker,
                to_clients=link.to_clients,
            )
        )
    return tuple(found)
