"""`python -m coordinator_sim_conformance` is the command `conformance`."""

from coordinator_sim_conformance.cli.main import main

main()
