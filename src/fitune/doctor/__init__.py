"""What is wrong with this machine, log, run or script, and how to mend it. Imports neither torch nor transformers."""

from fitune.doctor.diagnosis import Diagnosis, diagnose, diagnose_log, diagnose_run, diagnose_script
from fitune.doctor.examination import Examination, Line, examine, machine_findings
from fitune.doctor.pages import Page, all_rules, explain, rule_of

__all__ = [
    "Diagnosis",
    "Examination",
    "Line",
    "Page",
    "all_rules",
    "diagnose",
    "diagnose_log",
    "diagnose_run",
    "diagnose_script",
    "examine",
    "explain",
    "machine_findings",
    "rule_of",
]
