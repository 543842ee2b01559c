"""What a run says of a target: result files, known gaps, reports for CI, and the matrix."""
