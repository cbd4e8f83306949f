"""Operations on a store that is not open: restore, rescue, migration."""
