"""What the other process runs."""

from shopdesk.prompts import ROOT


def send_weight(sender, kilos):
    sender.send(kilos * 1000 + len((ROOT / "data/season.txt").read_text("utf-8")))
