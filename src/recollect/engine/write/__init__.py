"""The write path: validates records, assigns ids, enforces quotas and commits."""
