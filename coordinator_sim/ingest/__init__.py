"""Production sources into one trace: files found, recognised, read, merged, and judged."""
