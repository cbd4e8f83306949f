"""What every layer may use: deadlines, locks on files, time zones, how results show themselves, what is not copied."""
