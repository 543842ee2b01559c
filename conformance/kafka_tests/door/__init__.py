"""Kafka's unit tests of its group coordinator at the door of ours, over `coordinator-sim lines`.

`java` puts a door before each manager that a test builds: what the test asks is asked of Kafka's
manager and of a stepped world of `lines`, and the test gets the answer of the latter. `left_out`
names each test that this cannot judge, and why. `tests/oracle/test_kafka_unit_tests.py` runs them.
"""
