"""came-pytorch, adan-pytorch, adabelief-pytorch, adam-atan2-pytorch: each on a regression."""

from adabelief_pytorch import AdaBelief
from adam_atan2_pytorch import AdamAtan2
from adan_pytorch import Adan
from came_pytorch import CAME
from common import regression


def run():
    o = {}
    o["came"] = regression(lambda n: CAME(n.parameters(), lr=2e-3))
    o["adan"] = regression(lambda n: Adan(n.parameters(), lr=1e-2))
    o["belief"] = regression(lambda n: AdaBelief(n.parameters(), lr=1e-2, print_change_log=False))
    o["atan2"] = regression(lambda n: AdamAtan2(n.parameters(), lr=1e-2))
    return o
