"""A package that is missing is explained."""

import json

import pytest

from explorax.extras import optional


def test_a_module_that_is_there():
    assert optional("json", "a test") is json


def test_a_module_that_is_missing():
    message = r"^A figure needs no_such_module\. Install it with pip install 'explorax\[deep\]'\.$"
    with pytest.raises(ImportError, match=message):
        optional("no_such_module", "a figure", extra="deep")
