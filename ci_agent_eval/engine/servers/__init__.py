"""Tool servers: processes, sharing between episodes, and their toolsets."""
