"""Universal Transformer: repeated layers, and adaptive computation time (Dehghani et al. 2019, arXiv 1807.03819).

For tasks that ask for more thought about some pieces than about others: `--model=universal_transformer`, its sets, the
layers that it is made of, and what it tells beside its output: in how many steps it thought about each piece, by
t2t-decoder's --ponder_file, `translate(…, return_ponder_steps=True)` and as a picture. No pip extra.
"""
