"""Who and what the records mention: entities, their relations and aliases."""
