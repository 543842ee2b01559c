"""Random programs run on two coordinators in lockstep: ours and Apache Kafka's own.

`references` names the Kafkas, `programs` draws the commands, `sides` answer them, `comparison`
finds differences, `loop` runs it all, `shrinking` makes a failing program small. No knowledge of
coordinators lives here: the reference is the judge.
"""
