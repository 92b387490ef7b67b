"""Programs a type checker must accept; mypy reads them, pytest runs them."""
