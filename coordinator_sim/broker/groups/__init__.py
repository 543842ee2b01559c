"""Group coordinators of a cluster's brokers, the APIs before and after them, and their log."""
