"""Stores: durable storage for records. They store and select; they do not rank."""
