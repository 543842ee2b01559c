"""The mini-broker on real sockets: Kafka's wire, HTTP control, clocks, files of traces; asyncio.

What a broker answers is not decided here.
"""
