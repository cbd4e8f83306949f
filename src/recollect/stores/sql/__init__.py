"""The ledger in SQL tables: what the SQLite store and the PostgreSQL store share."""
