"""The contract: pydantic models of every file that this program writes."""
