"""The HTTP service: page, API, metrics. Binds to loopback unless a token protects it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from importlib.resources import files
from time import monotonic
from typing import Annotated, Any, Protocol

from fastapi import Body, FastAPI, HTTPException, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from fastapi_offline import FastAPIOffline
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from pydantic import AfterValidator, BaseModel, ConfigDict, Discriminator, Field, Tag

from fitune.hf import give_memory_back
from fitune.predicting.batching import Batcher, Closing, Item, QueueFull, Refused
from fitune.predicting.guards import BodyGuard, SecurityHeaders, StatusCount, TokenGuard
from fitune.values import Prediction
from fitune.values.base import Value

__all__ = ["Limits", "create_app"]


MEMORY_SECONDS = 2.0
"""How often free memory goes back to the system: seldom enough to cost nothing, often enough to stay flat."""


class Servable(Protocol):
    """What the service needs of a Predictor."""

    def __call__(self, texts: list[str], text_pairs: Sequence[str | None] | None = None, /) -> list[Prediction]: ...

    def describe(self) -> dict[str, Any]: ...


class Limits(Value):
    """What one request, and all of them together, may ask for."""

    body_bytes: int = Field(default=8 << 20, ge=1024)
    """Largest request body."""
    texts: int = Field(default=1000, ge=1)
    """Most texts in one request."""
    text_characters: int = Field(default=100_000, ge=1)
    """Longest text; texts longer than the model's window are split, not cut."""
    queue_characters: int = Field(default=262_144, ge=1)
    """Most characters waiting; past it requests are answered 429."""
    request_seconds: float = Field(default=60.0, gt=0)
    """Longest wait for an answer."""
    body_seconds: float = Field(default=20.0, gt=0)
    """Longest time for a request's body to arrive."""
    wait_seconds: float = Field(default=0.004, ge=0)
    """How long a lone text waits for company."""


def check_unicode(text: str) -> str:
    """JSON can spell half of a character (a lone surrogate); no text file can hold it and no tokenizer reads it."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"character {error.start} is half of a surrogate pair") from None
    return text


UnicodeText = Annotated[str, AfterValidator(check_unicode)]


class _Strict(BaseModel):
    """No unknown keys, no numbers where texts belong, no half characters."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Pair(_Strict):
    """A pair of texts, for a model that was trained on pairs."""

    text: UnicodeText
    text_pair: UnicodeText


class _Options(_Strict):
    min_score: float = Field(default=0.0, ge=0, le=1, description="Entities below this score are left out.")


class OneText(_Options):
    """One text, or one pair."""

    text: UnicodeText
    text_pair: UnicodeText | None = None

    def items(self) -> list[Item]:
        return [Item(self.text, self.text_pair)]


class ManyTexts(_Options):
    """A list of texts, or of pairs; the answers come in the same order."""

    texts: list[UnicodeText | Pair]

    def items(self) -> list[Item]:
        return [Item(one) if isinstance(one, str) else Item(one.text, one.text_pair) for one in self.texts]


def _kind(body: Any) -> str:
    return "many" if isinstance(body, ManyTexts) or (isinstance(body, dict) and "texts" in body) else "one"


PredictRequest = Annotated[Annotated[OneText, Tag("one")] | Annotated[ManyTexts, Tag("many")], Discriminator(_kind)]


class EntityAnswer(BaseModel):
    """Characters [start, end) of the text, counted in Unicode code points; ``text`` is that slice."""

    start: int
    end: int
    label: str
    score: float | None = None
    text: str


class PredictionAnswer(BaseModel):
    """``entities`` of a named-entity model; ``labels`` and ``scores`` of a classifier."""

    text: str
    text_pair: str | None = None
    entities: list[EntityAnswer] | None = None
    labels: list[str] | None = None
    scores: dict[str, float] | None = None


class PredictResponse(BaseModel):
    """One prediction a text, in the order asked."""

    predictions: list[PredictionAnswer]


class Problem(BaseModel):
    """Why a request was refused."""

    detail: Any


class Health(BaseModel):
    status: str


REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": why}
    for status, why in {
        400: "The body is not JSON in UTF-8.",
        401: "A valid token is needed (only when the service was started with one).",
        408: "The body did not arrive in time.",
        413: "The body, the number of texts or a text is too large.",
        415: "The body is not sent as application/json.",
        422: "The request does not have the documented form, or the model refuses a text of it.",
        429: "Too much is waiting; Retry-After says when to come back.",
        500: "The model failed on this request.",
        503: "The service is shutting down.",
        504: "No answer within the time limit.",
    }.items()
}


class _Metrics:
    """Counters of one service, in a registry of its own so that tests and several apps do not collide."""

    def __init__(self, queued: Callable[[], float]) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter("fitune_requests", "Requests answered", ["status"], registry=self.registry)
        self.texts = Counter("fitune_texts", "Texts predicted", registry=self.registry)
        waited = "Time to answer a request of the documented form"
        self.seconds = Histogram("fitune_request_seconds", waited, registry=self.registry)
        sizes = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)
        self.batch = Histogram("fitune_batch_texts", "Texts in a batch", buckets=sizes, registry=self.registry)
        waiting = Gauge("fitune_queue_characters", "Characters waiting", registry=self.registry)
        waiting.set_function(queued)

    def count(self, status: int) -> None:
        self.requests.labels(status=str(status)).inc()


def create_app(predictor: Servable, *, limits: Limits | None = None, token: str | None = None) -> FastAPI:
    """The service as an ASGI app.

    predictor: answers ``predictor(texts, pairs)`` and ``describe()``; called from one thread.
    token: when given, every path but the page and the health checks demands it.
    """
    limits = limits or Limits()

    memory_returned = monotonic()

    def predict(items: Sequence[Item]) -> list[Prediction]:
        nonlocal memory_returned
        pairs = [item.text_pair for item in items]
        found = predictor([item.text for item in items], pairs if any(p is not None for p in pairs) else None)
        if monotonic() - memory_returned > MEMORY_SECONDS:
            give_memory_back()
            memory_returned = monotonic()
        return found

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncGenerator[None, None]:
        batcher = Batcher(
            predict,
            wait_seconds=limits.wait_seconds,
            queue_characters=limits.queue_characters,
            observe=lambda texts, _seconds: metrics.batch.observe(texts),
        )
        app.state.batcher = batcher
        batcher.start()
        yield
        await batcher.close()

    def queued() -> float:
        batcher: Batcher | None = getattr(app.state, "batcher", None)
        return batcher.queued_characters if batcher is not None else 0.0

    app: FastAPI = FastAPIOffline(
        title="fitune", lifespan=lifespan, redoc_url=None, separate_input_output_schemas=False
    )
    metrics = _Metrics(queued)
    _add_predict(app, limits, metrics)
    _add_status(app, predictor, metrics, guarded=token is not None)
    _add_page(app)
    app.add_middleware(BodyGuard, max_bytes=limits.body_bytes, seconds=limits.body_seconds)
    if token is not None:
        app.add_middleware(TokenGuard, token=token)
    # Around the guards: what they refuse was asked and answered too.
    app.add_middleware(StatusCount, path="/predict", count=metrics.count)
    app.add_middleware(SecurityHeaders)
    return app


def _add_predict(app: FastAPI, limits: Limits, metrics: _Metrics) -> None:
    def refuse_size(items: list[Item]) -> None:
        if len(items) > limits.texts:
            raise HTTPException(413, f"{len(items)} texts in one request; at most {limits.texts}")
        for number, item in enumerate(items):
            longest = max(len(item.text), len(item.text_pair or ""))
            if longest > limits.text_characters:
                raise HTTPException(413, f"text {number} has {longest} characters; at most {limits.text_characters}")

    async def answer(request: OneText | ManyTexts, batcher: Batcher | None) -> PredictResponse:
        if batcher is None:
            raise HTTPException(503, "the service has not started")
        items = request.items()
        refuse_size(items)
        try:
            predictions = await asyncio.wait_for(batcher.submit(items), limits.request_seconds)
        except QueueFull as full:
            raise HTTPException(
                429, "too much is waiting", headers={"Retry-After": str(full.retry_after_seconds)}
            ) from full
        except Refused as refused:
            raise HTTPException(422, _told(refused, many=isinstance(request, ManyTexts))) from refused
        except Closing as closing:
            raise HTTPException(503, "the service is shutting down") from closing
        except (asyncio.TimeoutError, TimeoutError) as late:
            raise HTTPException(504, f"no answer within {limits.request_seconds:g} s") from late
        metrics.texts.inc(len(items))
        plain = [p.to_json() for p in predictions]
        for one in plain:
            if "entities" in one and request.min_score > 0:
                one["entities"] = [e for e in one["entities"] if (e.get("score") or 0.0) >= request.min_score]
        return PredictResponse.model_validate({"predictions": plain})

    @app.post("/predict", responses=REFUSALS, response_model_exclude_none=True)
    async def predict(request: Annotated[PredictRequest, Body()], http: Request) -> PredictResponse:
        """Entities or classes of one text or of a list; texts of any length, nothing is dropped, order is kept."""
        with metrics.seconds.time():
            return await answer(request, getattr(http.app.state, "batcher", None))

    @app.exception_handler(RequestValidationError)
    async def invalid(http: Request, error: RequestValidationError) -> JSONResponse:
        # Sent as something else, JSON is not read at all: every complaint about its form would mislead.
        if error.body is not None and not _is_json(http.headers.get("content-type", "")):
            return JSONResponse(
                {"detail": "send the body as JSON, with the header Content-Type: application/json"}, 415
            )
        # Never send the user's texts back in an error, nor a list of a million complaints.
        shown = [{"loc": e["loc"], "msg": e["msg"], "type": e["type"]} for e in error.errors()[:5]]
        return JSONResponse({"detail": shown}, 422)


def _is_json(content_type: str) -> bool:
    kind = content_type.partition(";")[0].strip().lower()
    return kind == "application/json" or (kind.startswith("application/") and kind.endswith("+json"))


def _told(refused: Refused, *, many: bool) -> str:
    """Which text of the request, what is wrong with it and what to send instead."""
    place = f"texts[{refused.number}]" if many else "text"
    return f"{place}: {refused.refusal.found}. {refused.refusal.next_step}".rstrip(". ") + "."


def _add_status(app: FastAPI, predictor: Servable, metrics: _Metrics, *, guarded: bool) -> None:
    refusals: dict[int | str, dict[str, Any]] = {401: REFUSALS[401]} if guarded else {}

    @app.get("/model", responses=refusals)
    async def model() -> dict[str, Any]:
        """Task, labels, scores, versions and settings of the model."""
        return predictor.describe()

    @app.get("/healthz")
    async def alive() -> Health:
        """The process is alive."""
        return Health(status="ok")

    @app.get("/readyz", responses={503: REFUSALS[503]})
    async def ready(http: Request) -> Health:
        """The service takes requests."""
        if getattr(http.app.state, "batcher", None) is None:
            raise HTTPException(503, "not started")
        return Health(status="ready")

    @app.get("/metrics", response_class=PlainTextResponse, responses=refusals)
    async def read_metrics() -> Response:
        """Counters in Prometheus' text format."""
        return Response(generate_latest(metrics.registry), media_type=CONTENT_TYPE_LATEST)


_PAGE_FILES = {
    "index.html": "text/html; charset=utf-8",
    "page.css": "text/css; charset=utf-8",
    "page.js": "text/javascript; charset=utf-8",
    "words.js": "text/javascript; charset=utf-8",
}


def _add_page(app: FastAPI) -> None:
    folder = files("fitune.predicting") / "page"
    contents = {name: (folder / name).read_bytes() for name in _PAGE_FILES}

    @app.get("/", include_in_schema=False)
    async def index() -> Response:
        return Response(contents["index.html"], media_type=_PAGE_FILES["index.html"])

    @app.get("/page/{name}", include_in_schema=False)
    async def page_file(name: str) -> Response:
        if name not in contents:
            raise HTTPException(404, "no such file")
        return Response(contents[name], media_type=_PAGE_FILES[name])
