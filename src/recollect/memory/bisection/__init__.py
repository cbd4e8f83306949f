"""Bisection: which commit changed the answer to a question, and why. Written against the public calls."""
