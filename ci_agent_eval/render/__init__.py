"""Rendering a report as text: terminal, Markdown, HTML, annotations, JSON. Pure."""
