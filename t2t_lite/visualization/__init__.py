"""Pictures of attention weights and of training curves."""
