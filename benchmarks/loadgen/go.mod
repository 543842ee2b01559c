module coordinator-sim/benchmarks/loadgen

go 1.24
