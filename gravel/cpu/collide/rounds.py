"""A ball against a capsule, a cylinder or a cone, compiled for the CPU; see ``gravel.formulas.rounds``."""

from gravel.cpu.formulas import FORMS
from gravel.formulas import rounds

sphere_round = FORMS.of(rounds).sphere_round
