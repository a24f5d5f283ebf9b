"""Extras: a folder for each optional feature, found here as a user's `--t2t_usr_dir` is where that says.

Nothing else lists them: what the modules of a folder register belongs to t2t_lite, its `t2t_<name>.py` are commands.
The core imports none, so that a folder may be taken out.
"""
