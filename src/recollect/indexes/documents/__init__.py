"""The indexed documents by number: their columns, ids, texts and cached records."""
