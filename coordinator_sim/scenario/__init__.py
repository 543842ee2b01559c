"""A scenario as plain data: a world, and what happens to it. Says nothing of how it is run."""
