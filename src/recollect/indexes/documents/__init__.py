"""The indexed documents: their columns, ids, texts and cached records, with a number each."""
