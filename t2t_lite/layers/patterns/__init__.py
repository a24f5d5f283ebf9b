"""Patterns of attention: which keys a query sees, and how to make only the scores of these. One file each."""
