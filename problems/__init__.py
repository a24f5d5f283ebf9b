"""Problems: one module a family; each registers itself."""
