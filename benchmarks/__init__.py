"""Measurements of overhead, start-up, JUnit, false alarms and steering."""
