"""`python -m coordinator_sim` is the command `coordinator-sim`."""

from coordinator_sim.cli.entry import main

main()
