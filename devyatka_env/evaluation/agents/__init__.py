"""Checks of users' agents: faults, leaks, what is not reproducible."""
