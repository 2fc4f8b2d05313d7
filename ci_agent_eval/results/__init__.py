"""The files: result files in, loaded results out."""
