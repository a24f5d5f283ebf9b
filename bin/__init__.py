"""The commands. Each command is a thin module that parses flags, calls the library and prints the result."""
