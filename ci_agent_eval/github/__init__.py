"""Publishing on GitHub: comment, check run, annotations, step summary, outputs."""
