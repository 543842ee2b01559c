"""The metadata of a cluster: the image, its changes, elections, and what outlives the process."""
