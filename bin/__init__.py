"""The commands: thin modules that parse flags, call the library and print its results."""
