"""The doors of steering: its settings, its memory on disk, coding agents' hooks, the proxy."""
