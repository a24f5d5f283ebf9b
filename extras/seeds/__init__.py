"""Trains runs that differ only in their random seed, and prints the mean and the standard deviation of their metrics.

For reports: t2t-trainer --random_seeds=1,2,3.
"""
