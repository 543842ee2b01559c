"""`python -m conformance` is the command `conformance`."""

from conformance.cli.main import main

main()
