"""t2t-translate-all, t2t-bleu --translations_dir: translations by every checkpoint of a run, and their scores.

For who looks for the best checkpoint, also of another toolkit, by a command for each (tensor2tensor's
bin/t2t_translate_all.py).
"""
