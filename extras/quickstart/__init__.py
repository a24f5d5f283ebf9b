"""t2t-quickstart: the whole job in one command, on the phrasebook or on the user's files, within given minutes.

For the first hour: generates, trains, averages, translates, scores and exports by the commands that a user would type,
and prints each command. Without files it needs the problem of `extras/phrasebook`.
"""
