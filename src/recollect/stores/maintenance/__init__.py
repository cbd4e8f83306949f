"""What is done to a store that no program has to have open: backup, rescue, migration."""
