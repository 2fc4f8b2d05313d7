from shop.prices import discounted


def test_a_discount_is_taken_off():
    assert discounted(2000, 25) == 1500
