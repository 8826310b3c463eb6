"""A proxy or a certificate stands between here and the hub

## What it says

`ProxyError`, `Cannot connect to proxy`, `Tunnel connection failed`, `CERTIFICATE_VERIFY_FAILED`, `SSLError ...
EOF occurred`.

## Why

A proxy variable points to a program that does not run, or the company's proxy signs with its own certificate.

## How to know

`env | grep -i proxy`; `fitune doctor` shows the settings with passwords masked.

## How to fix

Unset the proxy (`unset HTTP_PROXY HTTPS_PROXY ALL_PROXY http_proxy https_proxy all_proxy`) or start it; for a
company certificate `export REQUESTS_CA_BUNDLE=/path/ca.pem`.

## How safe

Safe; do not switch verification off.

## Sources

https://requests.readthedocs.io/en/latest/user/advanced/#proxies
"""

import re
from collections.abc import Iterator

from fitune.doctor.log import Log, symptom
from fitune.doctor.raised import went_on
from fitune.doctor.symptom import Symptom
from fitune.machine import Machine
from fitune.messages import _

SEVERITY = "error"
TOPIC = "network"
PATTERNS = (
    r"unable to access 'https?://(?:huggingface|hf-mirror|github|www\.modelscope)\S*: .*(?:SSL|TLS|proxy|gnutls)",
    r"Unable to determine SOCKS version",
    r"Unknown scheme for proxy URL|check_hostname requires server_hostname|ProxySchemeUnknown|InvalidProxyURL"
    r"|InvalidSchema: Missing dependencies",
    r"WRONG_VERSION_NUMBER|using SOCKS proxy, but the 'socksio' package",
    r"ProxyError|Cannot connect to proxy|Tunnel connection failed|Missing dependencies for SOCKS",
    r"CERTIFICATE_VERIFY_FAILED|certificate verify failed",
    r"SSLError|SSLEOFError|SSL: UNEXPECTED_EOF|EOF occurred in violation of protocol",
)


def read(log: Log) -> Iterator[Symptom]:
    """Proxy and certificate errors, unless the program got over them."""
    hits = [hit for hit in log.find(*PATTERNS) if not re.search(r"wandb|comet|mlflow", hit.line.text, re.IGNORECASE)]
    if hits:
        over = went_on(log, hits[-1].line.number) or (
            log.has(r"'train_runtime'") and not log.in_last_traceback(hits[-1].line.number)
        )
        yield symptom(hits, confidence=0.97, severity="note" if over else None)


def examine(machine: Machine) -> Iterator[Symptom]:
    """A proxy is set, and through it nothing answers."""
    names = [
        name
        for name in machine.settings
        if name.lower() in {"http_proxy", "https_proxy", "all_proxy"} and machine.settings[name]
    ]
    if names and machine.endpoints and not any(endpoint.answers for endpoint in machine.endpoints):
        shown = ", ".join(f"{name}={machine.settings[name]}" for name in names)
        yield Symptom(evidence=(_("{settings}: nothing answers through it", settings=shown),), severity="warning")
