"""PettingZoo's own conformance tests, imported without the warning that their import gives."""

import warnings

with warnings.catch_warnings():  # pettingzoo.test imports one of PettingZoo's own deprecated modules for its doctests
    warnings.filterwarnings("ignore", "The old environment creation API", DeprecationWarning)
    from pettingzoo.test import api_test, parallel_api_test, render_test, seed_test

__all__ = ["api_test", "parallel_api_test", "render_test", "seed_test"]
