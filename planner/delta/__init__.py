"""The SQL of a view's change: one delta rule an operator."""
