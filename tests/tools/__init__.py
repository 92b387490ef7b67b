"""Tools that read pickles without running them."""
