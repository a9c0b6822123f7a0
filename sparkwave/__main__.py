"""The command `sparkwave`, and `python -m sparkwave`."""

from sparkwave.server.command_line.main import main

if __name__ == "__main__":
    main()
