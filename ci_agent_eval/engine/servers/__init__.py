"""Tool servers: their processes, their lives, and the toolsets an episode sees of them."""
