"""The systems that papers compare the Transformer with: LSTMs, ByteNet, ConvS2S, Neural GPUs, KERMIT.

For tables beside the Transformer's, each in a module of its name, which says the paper; their sets are in
`hparams_baselines`. Once they were a --t2t_usr_dir, which still may be named. What they cost, the extra describe
counts, which alone asks. No pip extra.
"""
