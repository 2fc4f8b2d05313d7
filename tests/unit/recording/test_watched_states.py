"""The states of a recorder are compared when its test ends, not when the episode is built."""

from __future__ import annotations

from tests.unit.recording.rig import a_recorder


def test_what_happens_after_the_end_of_the_test_is_no_change():
    recorder, orders = a_recorder(evidence="none"), {"1": {"status": "paid"}}
    recorder.watch(lambda: orders, "orders")
    orders["1"] = {"status": "refunded"}
    recorder.stop()
    orders.clear()  # as the teardown of a fixture does
    (state,) = recorder.finish().states
    (change,) = state.changes
    assert (change.before, change.after) == ({"status": "paid"}, {"status": "refunded"})
