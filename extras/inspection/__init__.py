"""t2t-datagen --inspect: what generated data hold, and what batches a set makes of them.

For who wants to know why a training is slow or a vocabulary odd: counts, examples as texts and ids, a histogram of
lengths, the share of padding and the number of shapes.
"""
