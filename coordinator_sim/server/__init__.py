"""The broker on real sockets, on asyncio: Kafka's wire, HTTP control, clocks, trace files.

`broker` decides what a broker answers.
"""
