"""The meanings of the terms that an agent meets, with aliases, found exactly or by words."""
