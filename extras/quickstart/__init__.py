"""t2t-quickstart, which runs all steps from the data to an export, on the phrasebook or on the user's files.

For the first hour with the package: generates data, trains, averages, translates, scores and exports with the commands
that a user would type, and prints each command. If no files are given, the command needs `extras/phrasebook`.
"""
