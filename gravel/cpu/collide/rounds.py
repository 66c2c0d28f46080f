"""A ball against a capsule, a cylinder or a cone, compiled for the CPU; see ``gravel.formulas.rounds``."""

from gravel.formulas import rounds
from gravel.host.formulas import FORMS

sphere_round = FORMS.of(rounds).sphere_round
