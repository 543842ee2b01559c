"""Connect's REST API as pure functions, forwarding between workers, and signatures."""
