"""PySpark reports over traces: sources, transforms, jobs, rendering."""
