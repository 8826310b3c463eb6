"""Card: a GPU type as numbers. Offer: a card at a price per hour somewhere."""

from pydantic import Field

from fitune.values.base import Value


class Card(Value):
    """A GPU type (not a device: the physical thing in a slot)."""

    id: str
    """What the user types, such as ``rtx3060-12g``."""
    name: str
    """As the maker writes it."""
    memory_bytes: int = Field(ge=0)
    """What a process can use in all, its CUDA context included."""
    compute_capability: tuple[int, int] | None
    """CUDA's sm version; None: no CUDA."""
    fp32_tflops: float = Field(ge=0)
    """Dense peak, without sparsity."""
    fp16_tflops: float = Field(ge=0)
    """Dense tensor-core peak with fp32 accumulation, or the plain rate where there are no tensor cores."""
    bf16_tflops: float = Field(ge=0)
    """Dense tensor-core peak; 0: not in hardware."""
    bandwidth_bytes_per_second: float = Field(ge=0)
    """Memory bandwidth."""
    context_bytes: int = Field(ge=0)
    """What the CUDA context takes outside the allocator, typically."""
    sources: tuple[str, ...]
    """Where the figures were published."""


class Offer(Value):
    """A card at a price per hour somewhere."""

    card: str
    """Card.id."""
    place: str
    """Who rents it out."""
    price_per_hour: float = Field(ge=0)
    """In ``currency``."""
    currency: str = "CNY"
    setup_seconds: float = Field(default=300, ge=0)
    """From paying to the first step."""
    source: str = ""
    """Where the price was seen, and when."""
