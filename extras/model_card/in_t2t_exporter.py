"""Exports have a README.md: a model card, with the license that --license states."""


def define_flags(flags):
    """Declares the flags."""
    flags.DEFINE_string("license", "", "The model's licence, such as CC-BY-4.0, for the README.md in the export.")
