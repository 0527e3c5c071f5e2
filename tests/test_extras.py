"""A package that is missing is explained."""

import json

import pytest

from explorax.extras import optional


def test_a_module_that_is_there():
    assert optional("json", "a test") is json


def test_a_module_that_is_missing():
    with pytest.raises(ImportError, match=r"^a figure needs no_such_module: pip install 'explorax\[deep\]'$"):
        optional("no_such_module", "a figure", extra="deep")
