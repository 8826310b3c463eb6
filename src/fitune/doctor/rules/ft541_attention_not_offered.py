"""The model does not offer this attention kernel

## What it says

`attention` names a kernel that this model or this installation lacks.

## Why

Kernels differ by architecture, card and installed packages.

## How to know

The message names the setting and the value that stands there.

## How to fix

Set `attention` to sdpa, or leave it out.

## How safe

Exact: kernels differ in rounding alone.

## Sources

fitune: tasks/assembling
"""

SEVERITY = "error"
