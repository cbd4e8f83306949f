"""Checks of arguments: which of them a call takes (`signatures`), and which values they may have (`checks`)."""
