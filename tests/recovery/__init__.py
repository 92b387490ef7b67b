"""Recovery stores from Python: every engine, what survives a kill, damage, locks, threads, forks."""
