"""snntorch, spikingjelly: spiking neurons over time, surrogate gradients."""

import torch
from common import array, brief, fill, gradients


def run():
    import snntorch as snn
    from snntorch import surrogate
    from spikingjelly.activation_based import functional, layer, neuron
    from spikingjelly.activation_based import surrogate as sg

    o = {}
    fc = fill(torch.nn.Linear(4, 6))
    lif = snn.Leaky(beta=0.9, spike_grad=surrogate.fast_sigmoid())
    mem = lif.init_leaky()
    x = array(5, 3, 4, high=3.0)
    t = 0
    for i in range(5):
        s, mem = lif(fc(x[i]) * 3, mem)
        t = t + s.sum() + mem.sum()
    t.backward()
    o["leaky"] = [t.item(), gradients(fc)]
    net = torch.nn.Sequential(
        layer.Linear(4, 6),
        neuron.LIFNode(surrogate_function=sg.ATan(), tau=2.0),
        layer.Linear(6, 2),
        neuron.IFNode(),
    )
    fill(net)
    t = 0
    for i in range(5):
        t = t + net(x[i] * 3).sum()
    t.backward()
    o["sj"] = [t.item(), gradients(net)]
    functional.reset_net(net)
    functional.set_step_mode(net, "m")
    o["m"] = brief(net(x * 3))
    return o
