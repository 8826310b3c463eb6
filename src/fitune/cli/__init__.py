"""The command line: one file a verb, each importing what it needs when it runs.

To add a verb: write ``cli/<verb>.py`` with ``def add(app)``, and its name into ``VERBS`` in ``cli/app.py``.
"""

from fitune.cli.start import main

__all__ = ["main"]
