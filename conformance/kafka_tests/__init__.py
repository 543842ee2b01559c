"""Apache Kafka's own compiled tests, run on a served cluster.

`java` holds what stands on the class path before Kafka's own `KafkaClusterTestKit`, so that every
test cluster is one process of `coordinator-sim serve`; `running` runs JUnit, `results` reads what
it reports, `left_out.toml` names each test that cannot pass and why.
"""
