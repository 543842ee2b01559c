"""The command `conformance`: one module a command, registered in `main`."""
