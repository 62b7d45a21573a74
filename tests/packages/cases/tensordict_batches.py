"""tensordict: nested batches, stacked, mapped, saved, fed to modules, their parameters replaced."""

import torch
from common import array, brief, fill, gradients
from tensordict import TensorDict
from tensordict import stack as tdstack
from tensordict.nn import TensorDictModule, TensorDictSequential


def run():
    td = TensorDict({"a": array(4, 3), "b": {"c": array(4, 2, seed=1)}}, batch_size=[4])
    o = {
        "i": brief(td[1:3]["b", "c"]),
        "s": list(tdstack([td, td], 0).batch_size),
        "m": brief(td.apply(lambda t: t * 2)["a"]),
        "k": sorted(map(str, td.keys(True))),
    }
    net = fill(torch.nn.Linear(3, 2))
    m = TensorDictSequential(
        TensorDictModule(net, in_keys=["a"], out_keys=["h"]),
        TensorDictModule(lambda x, y: (x * y).sum(-1), in_keys=["h", ("b", "c")], out_keys=["loss"]),
    )
    out = m(td)
    out["loss"].mean().backward()
    o["out"] = brief(out["loss"])
    o["g"] = gradients(net)
    p = TensorDict.from_module(net)
    with p.detach().clone().apply(lambda t: t * 0 + 1).to_module(net):
        o["f"] = brief(net(array(2, 3)))
    o["v"] = brief(torch.vmap(lambda t: t["a"].sum())(td))
    td.save("td")
    o["l"] = brief(TensorDict.load("td")["a"])
    o["cat"] = list(torch.cat([td, td], 0).shape)
    o["view"] = list(td.view(2, 2).shape)
    return o
