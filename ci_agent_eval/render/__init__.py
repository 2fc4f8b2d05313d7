"""A report in, text out: terminal, Markdown, annotations, JSON."""
