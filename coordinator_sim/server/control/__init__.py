"""The control surface of a served cluster over HTTP: what `coordinator-sim ctl` and the page use.

`models` are the messages, `views` read a cluster into them, `routes` are the verbs and the one list
of paths that both the application and the OpenAPI document are made from.
"""
