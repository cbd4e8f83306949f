"""Outlines: trees of nodes, and their forms as JSON, Org-mode and Markdown."""
