"""Starting and stopping the service: where it binds, which token protects it, how it ends."""

from __future__ import annotations

import ipaddress
import logging
import os
import secrets
from pathlib import Path

import uvicorn

from fitune.messages import _
from fitune.predicting.guards import HeaderDeadlineProtocol
from fitune.predicting.service import Limits, Servable, create_app
from fitune.values import Refusal

__all__ = ["choose_token", "is_loopback", "serve"]

TOKEN_VARIABLE = "FITUNE_TOKEN"


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server bound to ``host``."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def choose_token(host: str, token_file: str | None) -> tuple[str | None, bool]:
    """The token to demand, and whether it was made here (and so must be printed).

    From ``token_file``, else the environment, else made when others can reach ``host``, else none.
    """
    if token_file is not None:
        try:
            token = Path(token_file).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise Refusal(
                _("the token cannot be read: {error}", error=error),
                where=token_file,
                next_step=_("write one line of text into the file, or leave --token-file out to have a token made"),
            ) from error
    else:
        token = os.environ.get(TOKEN_VARIABLE, "").strip()
    if token:
        if len(token) < 16 or not token.isascii() or not token.isprintable():
            raise Refusal(
                _("the token must be at least 16 printable ASCII characters"),
                where=token_file or TOKEN_VARIABLE,
                next_step=_("leave it out to have one made"),
            )
        return token, False
    if token_file is not None:
        raise Refusal(_("the token file is empty"), where=token_file, next_step=_("write one line of text into it"))
    return (None, False) if is_loopback(host) else (secrets.token_urlsafe(24), True)


def serve(
    predictor: Servable,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | None = None,
    limits: Limits | None = None,
) -> None:
    """Serve until SIGINT or SIGTERM; then take nothing new and answer everything that was accepted."""
    if token is None and not is_loopback(host):
        raise ValueError("a host that others can reach needs a token")
    limits = limits or Limits()
    app = create_app(predictor, limits=limits, token=token)
    # uvicorn's access log would hold addresses and query strings; counters are in /metrics instead.
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)
    config = uvicorn.Config(
        app,
        host=host,
        port=port,
        http=HeaderDeadlineProtocol,
        ws="none",
        access_log=False,
        log_config=None,
        server_header=False,
        timeout_graceful_shutdown=int(limits.request_seconds) + 5,
        h11_max_incomplete_event_size=64 << 10,
    )
    try:
        uvicorn.Server(config).run()
    except SystemExit as error:  # uvicorn exits by itself when the port is taken
        if error.code in (0, None):
            return
        raise Refusal(
            _("the service could not start on {host}:{port}; another program may use that port", host=host, port=port),
            next_step=_("try another one: --port {port}", port=port + 1),
        ) from error
