"""The workloads of Trogdor: threads as generators, over clients that a driver brings."""
