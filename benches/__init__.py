"""Benchmarks; see README.md for how to run and read them."""
