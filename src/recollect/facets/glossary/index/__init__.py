"""The terms of a glossary: scored by BM25, and found where they occur in a text."""
