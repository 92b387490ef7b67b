"""The Python test suite; a package so that its helpers are importable and its commands run as ``python -m tests...``."""
