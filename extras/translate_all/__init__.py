"""t2t-translate-all and t2t-bleu --translations_dir, which translate with every checkpoint and score the results.

For finding a run's best checkpoint. As in tensor2tensor's bin/t2t_translate_all.py, you can choose the command that
translates.
"""
