"""Kafka's unit tests of its group coordinator, answered by ours over `coordinator-sim lines`.

The classes in `java` stand between a test and each manager that it builds. They pass every call to
Kafka's manager and to a stepped world of `lines`, and return the answer of `lines` to the test.
`left_out.toml` of the folder above names the tests that cannot pass, and
`tests/oracle/test_kafka_unit_tests.py` runs the others.
"""
