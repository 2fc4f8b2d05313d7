"""Every tax rate at many prices: what makes the whole suite long."""

import pytest
from shop.prices import with_tax


@pytest.mark.parametrize("rate", [0, 5, 7, 19, 20, 25])
@pytest.mark.parametrize("price", range(100, 5000, 100))
def test_tax_is_added(price, rate):
    assert with_tax(price, rate) == price + price // 100 * rate
