"""Basic arithmetic in decimal: what is written is what is computed."""

from decimal import Decimal, InvalidOperation


def add(a, b):
    """The sum of two numbers."""
    return number(a) + number(b)


def subtract(a, b):
    """The first number less the second."""
    return number(a) - number(b)


def multiply(a, b):
    """The product of two numbers."""
    return number(a) * number(b)


def divide(a, b):
    """The first number divided by the second; ZeroDivisionError when that is zero."""
    divisor = number(b)
    if divisor == 0:
        raise ZeroDivisionError(f"cannot divide {a} by zero")
    return number(a) / divisor


def percent_of(percentage, whole):
    """So many per cent of the whole."""
    return number(percentage) * number(whole) / 100


def number(value):
    """A finite decimal from text or a number; ValueError for anything else."""
    try:
        result = Decimal(str(value))
    except InvalidOperation:
        raise ValueError(f"not a number: {value!r}") from None
    if not result.is_finite():
        raise ValueError(f"not a finite number: {value!r}")
    return result


if __name__ == "__main__":
    print("0.1 + 0.2 =", add("0.1", "0.2"))
    print("10 - 2.50 =", subtract("10", "2.50"))
    print("6 x 7 =", multiply(6, 7))
    print("1 / 8 =", divide(1, 8))
    print("15 % of 80 =", percent_of(15, 80))
