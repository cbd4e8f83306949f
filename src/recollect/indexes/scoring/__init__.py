"""Scoring: from a parsed question to signals, scores, ranks and explanations."""
