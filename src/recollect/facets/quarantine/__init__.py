"""Quarantine: records that a policy keeps apart until a person has looked at them."""
