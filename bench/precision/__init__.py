"""Precision: how much of what recall returns answers, on eighty cases of our own in three languages."""
