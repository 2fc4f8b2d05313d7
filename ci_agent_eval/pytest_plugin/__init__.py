"""The pytest plugin: hooks of a few lines that call a session object."""
