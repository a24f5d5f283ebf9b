"""The parts of t2t-trainer: its flags, its schedules and its training runs."""
