"""Apache Kafka's own compiled tests, run on a served cluster.

`java` has a class of the same name as Kafka's `KafkaClusterTestKit`. It comes first on the class
path, and makes each test cluster a process of `coordinator-sim serve`. `running` runs JUnit,
`results` reads its reports, `left_out.toml` names each test that cannot pass and says why.
"""
