"""A run is a directory: its layout, its events, its evaluation, its report. No torch.

Whoever trains creates a Run, appends Events and writes an Evaluation; bar, report and remote tail read the same files.
"""

from fitune.runs.evaluation import (
    WORST_ERRORS,
    Confusion,
    DataFile,
    ErrorCase,
    Evaluation,
    Histogram,
    LabelScores,
    SplitEvaluation,
)
from fitune.runs.jobfile import job_from_fields, job_rules, job_sentences, job_toml, read_job_toml, write_job_toml
from fitune.runs.report import duration, gib, metric_text, render_report, score, write_report
from fitune.runs.run import Run, new_run_directory

__all__ = [
    "WORST_ERRORS",
    "Confusion",
    "DataFile",
    "ErrorCase",
    "Evaluation",
    "Histogram",
    "LabelScores",
    "Run",
    "SplitEvaluation",
    "duration",
    "gib",
    "job_from_fields",
    "job_rules",
    "job_sentences",
    "job_toml",
    "metric_text",
    "new_run_directory",
    "read_job_toml",
    "render_report",
    "score",
    "write_job_toml",
    "write_report",
]
