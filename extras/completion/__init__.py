"""t2t-completion: prints scripts that let bash, zsh and fish complete flags and the names of problems and sets.

For users of the command line. The scripts are made from the same tables as --help, so they cover every extra.
"""
