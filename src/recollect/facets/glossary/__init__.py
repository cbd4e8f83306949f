"""What the terms mean that an agent meets, with aliases, found exactly or by words."""
