"""Requests and answers of a simulated network as a broker's request log would tell them."""

from msgspec import Struct

from coordinator_sim.clients.effects import Send
from coordinator_sim.sim.network import Connection
from coordinator_sim.trace.exchange import Exchange


def exchange_of(
    connection: Connection,
    number: int,
    message: Send,
    response: Struct,
    times: tuple[int, int, int],
) -> Exchange:
    """A request that was answered.

    Args:
        connection: On which it came.
        number: Of the connection in the cluster's life.
        message: The request.
        response: What the broker answers.
        times: When the broker began with it, in microseconds; its version; when it is answered.
    """
    asked_us, api_version, now_us = times
    return Exchange(
        asked_us=asked_us,
        done_us=now_us,
        sent_us=now_us,
        seq=0,
        request=message.request,
        response=response,
        api_version=api_version,
        correlation_id=message.correlation_id,
        client_id=connection.member,
        client_host=connection.client_host,
        broker_id=connection.broker_id,
        connection=str(number),
    )
