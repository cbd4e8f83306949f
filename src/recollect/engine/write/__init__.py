"""The write path: validate, name, encode and commit."""
