"""Several processes that serve the same doors: a supervisor accepts connections, and workers serve them."""
