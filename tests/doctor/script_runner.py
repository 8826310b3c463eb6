"""Run scripts, each in a forked child with a time limit: ``python script_runner.py SECONDS SCRIPT ...``.

What every script imports is imported once, before the first child. The last line is JSON: {script: "" or its end}.
"""

import contextlib
import importlib
import json
import multiprocessing
import os
import runpy
import shutil
import sys
import traceback
from pathlib import Path


def run_one(script, said):
    """Run in a copy of the script's folder, so that none meets what another one wrote."""
    place = script.with_suffix(".run")
    shutil.copytree(script.parent / "place", place, symlinks=True)
    os.chdir(place)
    sys.argv, sys.path[0] = [str(script)], str(place)
    with said.open("w", encoding="utf-8") as file, contextlib.redirect_stdout(file), contextlib.redirect_stderr(file):
        try:
            runpy.run_path(str(script), run_name="__main__")
        except BaseException:
            traceback.print_exc()
            raise
    os._exit(0)


def main(arguments):
    seconds, scripts = float(arguments[0]), [Path(name) for name in arguments[1:]]
    for module in (
        "datasets",
        "pandas",
        "seqeval.metrics",
        "sklearn.metrics",
        "sklearn.model_selection",
        "transformers",
    ):
        importlib.import_module(module)
    from transformers import AutoModelForTokenClassification, BertTokenizerFast, Trainer  # noqa: F401

    fork = multiprocessing.get_context("fork")
    ends = {}
    for script in scripts:
        said = script.with_suffix(".log")
        child = fork.Process(target=run_one, args=(script, said))
        child.start()
        child.join(seconds)
        if child.is_alive():
            child.kill()
            ends[script.name] = f"not done after {seconds} s"
        else:
            ends[script.name] = "" if child.exitcode == 0 else said.read_text(encoding="utf-8")[-1500:] or "died"
    print(json.dumps(ends))


if __name__ == "__main__":
    main(sys.argv[1:])
