"""Fixtures of all tests."""

import pytest
from shopdesk.children import Warehouse
from shopdesk.workers import Worker


@pytest.fixture
def customer():
    return "Ada"


@pytest.fixture
def visitor(customer):
    return f"{customer} Lovelace"


@pytest.fixture(scope="session")
def worker():
    worker = Worker()
    yield worker
    worker.stop_worker()


@pytest.fixture
def warehouse():
    server = Warehouse()
    yield server
    server.stop_server()


@pytest.fixture(autouse=True)
def prepared_desk(monkeypatch):
    monkeypatch.setenv("SHOPDESK_PREPARED", "yes")


@pytest.fixture
def greeting(pytestconfig):
    return pytestconfig.getini("greeting")


def pytest_addoption(parser):
    parser.addini("greeting", "the first word of the desk", default="Hello")
