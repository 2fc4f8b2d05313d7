"""Forwarding HTTP requests to a provider; the gateway and the steering proxy share it."""
