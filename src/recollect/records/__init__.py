"""Records and what makes them: fields, canonical bytes, identity. Pure values, no I/O."""
