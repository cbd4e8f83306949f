"""The read path: evaluates filters, scores documents, loads records and explains hits."""
