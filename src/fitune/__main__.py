"""``python -m fitune`` is the command ``fitune``."""

from fitune.cli import main

if __name__ == "__main__":
    main()
