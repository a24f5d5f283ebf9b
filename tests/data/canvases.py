"""The distribution of canvases and slots (Stern et al. 2019, "Insertion Transformer"), by enumeration in NumPy."""

import collections
import itertools
import math

import numpy as np


def canvases(row):
    """Returns {canvas: probability} of different ids: after any number of steps of any order of insertion."""
    found = collections.Counter()
    for order in itertools.permutations(range(len(row))):
        for size in range(len(row) + 1):
            canvas = tuple(row[i] for i in sorted(order[:size]))
            found[canvas] += 1 / math.factorial(len(row)) / (len(row) + 1)
    return found


def slot_weights(count, order, temperature=1.0):
    """Returns the probabilities with which each of so many missing ids of a slot is predicted."""
    distance = np.abs(np.arange(count) - (count - 1) / 2)
    weights = np.exp(-distance / temperature) if order == "binary_tree" else np.ones(count)
    return weights / weights.sum()
