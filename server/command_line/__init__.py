"""The command `sparkwave`: its arguments, and what each of its commands does."""
