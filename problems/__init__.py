"""Problems: one module per family, which registers itself."""
