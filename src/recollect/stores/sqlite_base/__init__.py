"""Parts that every SQLite file of Recollect needs: page checksums, the comparison of tables, and errors."""
