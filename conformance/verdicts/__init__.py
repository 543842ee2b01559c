"""Results of a run against a target: result files, known gaps, CI reports, the matrix."""
