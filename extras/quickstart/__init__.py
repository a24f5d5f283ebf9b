"""t2t-quickstart: the whole job in one command, on the phrasebook or on files of one's own, within given minutes.

For the first hour: it generates, trains, averages, translates, scores and exports by the commands that a user would
type, and prints each. Without files it needs the problem of `extras/phrasebook`.
"""
