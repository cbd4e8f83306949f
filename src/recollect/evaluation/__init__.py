"""Evaluation: how well recall finds the evidence of questions, on conversations whose evidence is known."""
