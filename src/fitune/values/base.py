"""The base of every value that is written to disk."""

from pydantic import BaseModel, ConfigDict


class Value(BaseModel):
    """Frozen, closed (an unknown key is an error, not a shrug), JSON both ways."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
