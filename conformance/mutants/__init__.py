"""Random faults of one line in the group coordinator, and which case or program notices each."""
