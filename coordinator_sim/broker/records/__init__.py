"""APIs about records: Produce, Fetch, ListOffsets, DeleteRecords, and requests that wait."""
