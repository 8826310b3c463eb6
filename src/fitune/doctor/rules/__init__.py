"""One symptom, one file ``ftNNN_name.py``: its docstring is its page, ``ftNNN_name.zh.md`` beside it the Chinese one.

A rule has ``SEVERITY`` and any of these functions, each yielding ``Symptom``s:

* ``read(log)``       a normalised log (``doctor.log.Log``)
* ``examine(machine)`` a ``machine.Machine``; ``TOPIC`` then names the line of ``fitune doctor`` it belongs to
* ``watch(history)``  a run's events (``doctor.history.History``)
* ``check(script)``   a script's syntax tree (``doctor.script.Script``)

``SAFETY`` (default "display"), ``COMMAND`` and ``SETTINGS`` complete the page's "How to fix" into a Fix.
A rule with none of the functions is raised elsewhere in fitune; its page stands here with the others.
"""
