"""t2t-completion: scripts by which bash, zsh and fish complete the commands' flags, and the names of problems and sets.

For who types commands often. The scripts are made from the tables that also make --help, so they know every extra.
"""
