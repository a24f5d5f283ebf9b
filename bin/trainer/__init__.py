"""What only t2t-trainer needs: its flags, its schedules and what they start."""
