"""``fitune serve``: a trained model behind HTTP, with a page."""

from typing import Annotated

import typer

from fitune.cli.app import add_verb
from fitune.messages import _


def add(app: typer.Typer) -> None:
    """Put the verb into ``app``."""

    def serve(
        run: Annotated[str, typer.Argument(metavar="RUN", help=_("Run directory, model folder or exported folder."))],
        host: Annotated[
            str, typer.Option("--host", help=_("Address to bind to; one that others can reach demands a token."))
        ] = "127.0.0.1",
        port: Annotated[int, typer.Option("--port", min=1, max=65535, help=_("Port."))] = 8000,
        token_file: Annotated[
            str | None,
            typer.Option("--token-file", metavar="FILE", help=_("File with the token; or set FITUNE_TOKEN.")),
        ] = None,
        engine: Annotated[
            str | None,
            typer.Option(
                "--engine",
                metavar="ENGINE",
                help=_("torch, onnx, ctranslate2, or the last two with -int8; by default the fastest exact one here."),
            ),
        ] = None,
        queue: Annotated[
            int, typer.Option("--queue", min=1, help=_("Most characters waiting; past it requests get 429."))
        ] = 262_144,
        timeout: Annotated[float, typer.Option("--timeout", min=0.1, help=_("Seconds to answer within."))] = 60.0,
    ) -> None:
        from fitune.cli.render import say
        from fitune.hf import keep_memory, light_imports
        from fitune.predicting import Limits, choose_token, is_loopback
        from fitune.predicting import serve as run_server

        token, made_here = choose_token(host, token_file)
        keep_memory()
        with light_imports():
            from fitune.predicting import Predictor

            predictor = Predictor(run, engine=engine)
        predictor("预热")  # the first pass is slow: not for the first user
        address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        page, docs = f"{address}/", f"{address}/docs"
        say(_("Serving {run} ({engine}) at {address}", run=run, engine=predictor.engine, address=address))
        say(_("Page: {page}   API: {docs}   stop with Ctrl-C", page=page, docs=docs))
        if token is not None and made_here:
            say(_("Token, demanded with every request: {token}", token=token))
        if not is_loopback(host):
            say(
                _(
                    "The token and the texts travel unencrypted. For other people, leave --host at 127.0.0.1 and put a "
                    "proxy with TLS in front (nginx, caddy: reverse_proxy 127.0.0.1:{port}).",
                    port=port,
                )
            )
        limits = Limits(queue_characters=queue, request_seconds=timeout)
        run_server(predictor, host=host, port=port, token=token, limits=limits)
        say(_("Stopped; everything that was accepted is answered."))

    add_verb(app, "serve", serve, _("Serve a trained model: web page and HTTP API."))
