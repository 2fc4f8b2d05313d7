"""The ground floor: what is written down, in pydantic only."""
