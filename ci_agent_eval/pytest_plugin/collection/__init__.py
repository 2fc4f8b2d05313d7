"""Collection: episodes among the items, their iterations, shards and exclusions."""
