"""What scenarios depend on: recorded while they run, and compared with a change."""
