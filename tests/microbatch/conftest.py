import gc

import pytest


@pytest.fixture(autouse=True, scope="package")
def _imported_modules_stay_out_of_collections():
    """Recovery collects garbage; without this each of the thousands of failures walks all of torch again."""
    gc.collect()
    gc.freeze()
    yield
    gc.unfreeze()
