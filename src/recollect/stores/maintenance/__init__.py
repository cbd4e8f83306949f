"""Operations on store files that are not open: restore, rescue and migration."""
