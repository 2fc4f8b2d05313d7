"""Collection: which items are episodes, their iterations, shards, and what is left out."""
