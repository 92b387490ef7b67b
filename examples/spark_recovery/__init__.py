"""A real Spark master that is killed and comes back: `make demo-recovery`."""
