"""Sparse distributed representations: encoding text as bits, and searching them."""
