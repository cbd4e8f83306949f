"""The PostgreSQL store: the tables of the file, on a server that many machines share."""
