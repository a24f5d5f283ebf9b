"""Extras: one folder for each optional feature.

t2t_lite finds the folders by listing this package. What their modules register can be used by name in every command,
and each `t2t_<name>.py` is a command. The core does not import any extra, so any folder can be deleted.
"""
