"""The read path: plan, find candidates, score, load records, explain."""
