"""What users install: the names, the files around them, the scripts that build and try them."""
