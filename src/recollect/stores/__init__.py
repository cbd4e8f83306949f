"""Stores: where records are durable. They keep and find; they do not rank."""
