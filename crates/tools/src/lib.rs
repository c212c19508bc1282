//! Benchmark tools: their argument vectors and the reading of their output.
