"""t2t-completion: scripts for bash, zsh and fish that complete flags of the commands and names of problems and sets.

For everybody who types commands. The scripts are made from the same tables as --help, so they know every extra.
"""
