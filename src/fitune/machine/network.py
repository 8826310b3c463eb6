"""Do the hub and its mirrors answer? One small request each, all at once, with short time-outs."""

import os
import ssl
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

from fitune.machine.secrets import mask
from fitune.machine.values import Endpoint

# A file of a few hundred bytes that every mirror of the hub has; ModelScope has its own paths.
_FILE = "/google-bert/bert-base-chinese/resolve/main/config.json"
ENDPOINTS: tuple[tuple[str, str], ...] = (
    ("huggingface.co", "https://huggingface.co" + _FILE),
    ("hf-mirror.com", "https://hf-mirror.com" + _FILE),
    ("modelscope.cn", "https://www.modelscope.cn/api/v1/models/tiansz/bert-base-chinese"),
)


def ask(name: str, url: str, limit_seconds: float) -> Endpoint:
    """One HEAD request through the proxies of the environment."""
    started = time.monotonic()
    request = urllib.request.Request(url, method="HEAD", headers={"User-Agent": "fitune-doctor"})
    status: int | None = None
    error = ""
    try:
        with urllib.request.urlopen(request, timeout=limit_seconds) as answer:
            status = int(answer.status)
    except urllib.error.HTTPError as caught:
        status = caught.code
        error = f"HTTP {caught.code}"
    except (urllib.error.URLError, ssl.SSLError, OSError, ValueError) as caught:
        error = mask(str(getattr(caught, "reason", caught)))
    answers = status is not None and status < 400
    return Endpoint(
        name=name, url=url, answers=answers, status=status, seconds=round(time.monotonic() - started, 2), error=error
    )


def probe_endpoints(limit_seconds: float = 2.0) -> tuple[Endpoint, ...]:
    """The hub, the known mirrors and HF_ENDPOINT, asked side by side."""
    wanted = list(ENDPOINTS)
    own = os.environ.get("HF_ENDPOINT", "").rstrip("/")
    if own and all(not url.startswith(own) for _name, url in wanted):
        wanted.insert(0, ("HF_ENDPOINT", own + _FILE))
    with ThreadPoolExecutor(len(wanted)) as pool:
        waiting = [pool.submit(ask, name, url, limit_seconds) for name, url in wanted]
        return tuple(future.result() for future in waiting)
