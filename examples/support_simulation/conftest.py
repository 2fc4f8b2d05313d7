"""The suite's fixtures: a fresh database, the desk, and a clock that only the desk moves."""

import pytest
from desk import SupportDesk
from network import Network

STEP_SECONDS = {"read": 0.180, "find_customer": 0.060, "restart_modem": 0.400}


class ScriptedClock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def think(self, step):
        self.now += STEP_SECONDS.get(step, 0.100)


@pytest.fixture
def episode_clock():
    return ScriptedClock()


@pytest.fixture
def network():
    network = Network()
    yield network
    network.close()


@pytest.fixture
def desk(network, episode_clock):
    return SupportDesk(network, think=episode_clock.think)
