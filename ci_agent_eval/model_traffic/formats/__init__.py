"""The HTTP formats of model providers: each is read and written in one module of this package."""
