"""The built-in problems; each module registers the problems of one family."""
