"""The command `sparkwave`: its arguments and its subcommands."""
