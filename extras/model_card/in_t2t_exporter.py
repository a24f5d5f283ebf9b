"""--license sets the licence in the model card (README.md) of an export."""


def define_flags(flags):
    """Declares the flags."""
    flags.DEFINE_string("license", "", "Licence of the model, such as CC-BY-4.0, for the export's README.md.")
