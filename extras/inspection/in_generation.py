"""What is said at the end of each generation."""
