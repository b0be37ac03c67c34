// Plays container runtimes in a bench.
module holdfast.dev/bench/caller

go 1.24
