"""t2t-datagen --inspect describes generated data, and the batches that an hparams set would make from them.

For finding out why training is slow or a vocabulary is odd: prints counts, examples as texts and pieces, a histogram of
lengths, the share of padding and the number of batch shapes.
"""
