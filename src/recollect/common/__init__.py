"""Parts that every layer may use: deadlines, time zones, how results show themselves, values that are not copied."""
