"""Random programs run on two coordinators in lockstep: ours and Apache Kafka's own.

`references` names the Kafkas, `programs` draws the commands, `sides` are who answers them,
`comparison` says what differs, `loop` runs it all, `shrinking` makes a failing program small.
No knowledge of how a coordinator works lives here: the reference is the judge.
"""
