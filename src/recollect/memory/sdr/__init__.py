"""Texts with sparse codes: `memory.sdr`."""
