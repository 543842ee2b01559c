"""Record batches, records and segments as bytes."""
