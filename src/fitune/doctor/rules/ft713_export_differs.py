"""The exported model is not the trained one

## What it says

Logits differ by more than rounding.

## Why

An operator was exported wrongly by these versions.

## How to know

The message names the file or folder.

## How to fix

Please report it with the versions that `fitune doctor` prints; nothing was exported.

## How safe

Safe: nothing was exported.

## Sources

fitune: predicting/export
"""

SEVERITY = "error"
