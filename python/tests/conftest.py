"""What the tests share: a runtime and a device on the backend that $WEIR_TEST_BACKEND names."""

import os

import pytest

import weir

BACKEND = os.environ.get("WEIR_TEST_BACKEND", "null")


@pytest.fixture
def runtime():
    with weir.open("", backend=BACKEND) as runtime:
        yield runtime


@pytest.fixture
def device(runtime):
    with runtime.device() as device:
        yield device
