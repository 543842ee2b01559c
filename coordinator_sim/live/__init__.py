"""Drivers on real networks: ports and workers carried out over TCP and HTTP, with asyncio.

What a port or a worker decides is not here; `live` carries effects out as `sim` does in virtual
time, and knows nothing of it. Clocks, sockets, threads and chance are allowed.
"""
