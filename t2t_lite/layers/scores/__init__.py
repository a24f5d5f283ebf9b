"""Scores of attention: how well a key answers a query, before the softmax. One file each."""
