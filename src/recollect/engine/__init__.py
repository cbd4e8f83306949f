"""The engine: the write path (validate, encode, commit) and the read path (plan, score, explain)."""
