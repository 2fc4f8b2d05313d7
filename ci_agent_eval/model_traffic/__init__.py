"""The traffic between agents and models: read, recorded, replayed and refused.

An agent of any framework talks to a model over a few HTTP formats. `formats` reads their requests
and answers, `hooks` sees them inside the process, `gateway` those of other processes; both pass
them to the `TrafficRecorder` of the episode. docs/architecture.md shows the package's place.
"""
