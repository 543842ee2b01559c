"""Connect's distributed herder around the WorkerCoordinator port. Pure."""
