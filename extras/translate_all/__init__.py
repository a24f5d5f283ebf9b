"""t2t-translate-all: translates a file by every checkpoint of a run, scores them, and draws the scores.

For who looks for the best checkpoint, also of another toolkit, by a command for each (tensor2tensor's
bin/t2t_translate_all.py).
"""
