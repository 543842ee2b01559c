"""The mini-broker on real sockets, on asyncio: Kafka's wire, HTTP control, clocks, trace files.

`mini_broker` decides what a broker answers.
"""
