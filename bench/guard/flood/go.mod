// Sends as much as a port passes, in a bench.
module holdfast.dev/bench/flood

go 1.24
