"""The transaction coordinator of a served cluster: states, log, markers, producer ids, APIs."""
