"""What only the Scala coordinator does: offsets kept by each group, one expiry job."""
