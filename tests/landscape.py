"""A search whose errors are known beforehand, for tests of how settings are improved."""

import math

from dkrls_cli.cascade.kernels import Kernel
from dkrls_cli.tuning.joint import JointSetting
from dkrls_cli.tuning.moves import Move
from dkrls_cli.tuning.trials.descent import Attempt


def setting_of(sigma=4.0, ridge=1e-3):
    return JointSetting((Kernel("matern52", sigma),), ridge)


class Landscape:
    """A search in which error and iterations of a setting are functions of log10 of its ridge."""

    def __init__(self, error, iterations=lambda _: 5):
        self.error, self.iterations = error, iterations
        self.ridges, self.bars, self.tried, self.better = [], [], 0, 0.995

    def attempt(self, setting, best):
        return self.solve(setting, best, None)

    def solve(self, setting, best, bar):
        self.tried += 1
        self.ridges.append(round(math.log10(setting.ridge), 3))
        self.bars.append((best.error if best else None, bar))
        exponent = math.log10(setting.ridge)
        return Attempt(setting, self.error(exponent), self.iterations(exponent), ())


RIDGE_MOVE = Move((), ((0.1, 10.0),), ridge_factor=10.0)


def at(exponent, search):
    setting = setting_of(ridge=10.0**exponent)
    return Attempt(setting, search.error(exponent), search.iterations(exponent), ())
