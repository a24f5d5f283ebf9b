"""Tasks: one object for what is learned from a problem, and for everything that follows from it; see `task`."""
