"""t2t-quickstart: the whole job by the commands that a user would type, on the phrasebook or on files of one's own."""
