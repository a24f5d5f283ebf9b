"""t2t-datagen --inspect: describes generated data, and the batches that a set of hyperparameters makes of them.

For finding out why a training is slow or a vocabulary odd: counts, examples as texts and ids, a histogram of lengths,
the share of padding and the number of shapes.
"""
