"""What carriers have in common."""


class BaseCarrier:
    """A carrier."""

    days = 5

    def book_parcel(self):
        return f"{self.name} in {self.count_days()} days"

    def count_days(self):
        return self.days
