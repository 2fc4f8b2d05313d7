"""The report as Markdown: the comment, the step summary and the check run's summary."""
