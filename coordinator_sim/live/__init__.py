"""Drivers on real networks: ports and workers run over TCP and HTTP, with asyncio.

Ports and workers make the decisions; `live` carries their effects out as `sim` does in virtual
time, without depending on it. Clocks, sockets, threads and randomness are allowed.
"""
