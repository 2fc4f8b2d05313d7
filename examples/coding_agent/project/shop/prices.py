"""Prices in cents."""


def discounted(price, percent):
    return price + price * percent // 100


def with_tax(price, percent):
    return price + price * percent // 100
