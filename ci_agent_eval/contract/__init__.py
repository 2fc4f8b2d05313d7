"""The contract: the pydantic models of all that is written to files."""
