"""Domains with rules of every kind."""

from __future__ import annotations

from headstart import Choices, DiscreteNumbers, FloatRange, IntRange, Ruled, Space

TEN = "ABCDEFGHIJ"
MIXTURE = Space.of({name: FloatRange(0, 1) for name in TEN})
SUM = " + ".join(TEN) + " = 1"
REACTION = Space.of(
    {
        "T": FloatRange(20, 250),
        "p": FloatRange(0.1, 100, log=True),
        "n": IntRange(1, 60),
        "solvent": Choices(("toluene", "water", "DMF")),
        "catalyst": Choices(("Pd", "Ni")),
    }
)
DOMAINS = {
    "mixture": Ruled(MIXTURE, [SUM]),
    "bounds": Ruled(MIXTURE, [SUM, "A >= 0.2", "B + C <= 0.1", "D >= 3*E", "J in steps of 0.05"]),
    "a point": Ruled(MIXTURE, [SUM, *(f"{name} >= 0.1" for name in TEN)]),
    "logs": Ruled(Space.of({name: FloatRange(1e-4, 1, log=True) for name in "ABCD"}), ["A + B + C + D = 1"]),
    "whole numbers": Ruled(Space.of({n: IntRange(0, 100) for n in "ABCD"}), ["A + B + C + D = 100", "2*A + B <= 60"]),
    "coefficients": Ruled(Space.of({n: IntRange(0, 40) for n in "ABC"}), ["3*A + 5*B + 7*C = 120"]),
    "both": Ruled(Space.of({"n": IntRange(0, 50), "x": FloatRange(0, 1), "y": FloatRange(0, 1)}), ["n + x + y = 20.5"]),
    "lists in sums": Ruled(
        Space.of(
            {
                "A": DiscreteNumbers((0.0, 2.5, 5.0, 20.0, 60.0)),
                "B": DiscreteNumbers((1, 2, 4, 8, 16, 32)),
                "n": IntRange(0, 40),
                "x": FloatRange(0, 30),
                "y": FloatRange(0, 30),
            }
        ),
        ["A + B + n + x + y = 100", "A <= 2*B + x"],
    ),
    "reaction": Ruled(
        REACTION,
        [
            "forbid: T > 180 and solvent = toluene",
            "not (T >= 120 and p > 10 and catalyst = Ni)",
            "T in steps of 5",
            "T + 2*n <= 200",
            "solvent != DMF",
        ],
    ),
}
