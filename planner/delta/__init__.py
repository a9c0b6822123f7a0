"""The SQL of a view's change: one rule an operator."""
