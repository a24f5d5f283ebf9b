"""t2t-translate-all and t2t-bleu --translations_dir: translations by every checkpoint of a run, and their scores.

For finding the best checkpoint, also of another toolkit that translates by a command, as in tensor2tensor's
bin/t2t_translate_all.py.
"""
