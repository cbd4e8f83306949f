"""Six days of a made-up agent's memory, and a hundred questions about them."""
