"""An extension that is loaded by its path."""


def count_points(cents):
    return cents // 100
