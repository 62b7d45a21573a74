"""geoopt: Riemannian Adam on the sphere and the Stiefel manifold, distances on the Poincare ball."""

import geoopt
from common import array, brief


def run():
    out = {}
    for manifold, shape in ((geoopt.Sphere(), (10, 3)), (geoopt.Stiefel(), (6, 3))):
        p = geoopt.ManifoldParameter(manifold.projx(array(*shape)), manifold=manifold)
        opt = geoopt.optim.RiemannianAdam([p], lr=0.05)
        target = array(*shape, seed=4)
        losses = []
        for _ in range(6):
            opt.zero_grad()
            loss = ((p - target) ** 2).sum()
            loss.backward()
            opt.step()
            losses.append(loss.item())
        out[type(manifold).__name__] = losses
    ball = geoopt.PoincareBall(c=1.0)
    x, y = (ball.expmap0(array(5, 2, seed=s)) for s in (1, 2))
    out["ball"] = [brief(ball.dist(x, y)), brief(ball.logmap(x, y)), brief(ball.mobius_add(x, y))]
    return out
