"""Learns to balance a pole on a cart by advantage actor-critic: `python examples/actor_critic.py [--steps N]`.

The critic's value is the baseline of the actor's gradient. It is detached there: the policy's loss must not train the
critic, which has a loss of its own. Ends with how long the pole stays up (500 at most), and the learning curve."""

import argparse

from plotting import save_svg
from tqdm import tqdm

import rushlight as torch
from rushlight import nn
from rushlight.nn import functional as F

LIMIT = 500  # steps of an episode


class CartPole:
    """Many carts at once, after Barto, Sutton and Anderson (1983). State: position, speed, angle, angular speed."""

    GRAVITY, CART, POLE, HALF_LENGTH, FORCE, TICK = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02

    def __init__(self, count):
        self.state = self.fresh(count)
        self.age = torch.zeros(count)

    @staticmethod
    def fresh(count):
        return torch.rand(count, 4) * 0.1 - 0.05

    def step(self, action):
        """Pushes left (0) or right (1). Returns which poles fell, which episodes ended, and how long those lasted."""
        x, v, angle, w = self.state.unbind(1)
        force = (action.float() * 2 - 1) * self.FORCE
        total = self.CART + self.POLE
        sin, cos = angle.sin(), angle.cos()
        push = (force + self.POLE * self.HALF_LENGTH * w**2 * sin) / total
        torque = (self.GRAVITY * sin - cos * push) / (self.HALF_LENGTH * (4 / 3 - self.POLE * cos**2 / total))
        speed_up = push - self.POLE * self.HALF_LENGTH * torque * cos / total
        self.state = torch.stack(
            [x + self.TICK * v, v + self.TICK * speed_up, angle + self.TICK * w, w + self.TICK * torque], 1
        )
        self.age += 1
        fell = (self.state[:, 0].abs() > 2.4) | (self.state[:, 2].abs() > 0.2095)  # 12 degrees
        ended = fell | (self.age >= LIMIT)
        lengths = self.age[ended].tolist()
        last = self.state
        self.state = torch.where(ended[:, None], self.fresh(len(ended)), self.state)
        self.age = torch.where(ended, torch.zeros(()), self.age)
        return fell, ended, last, lengths


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 2))
        self.critic = nn.Sequential(nn.Linear(4, 64), nn.Tanh(), nn.Linear(64, 1))

    def forward(self, state):  # (N, 4) -> logits (N, 2), value (N,)
        return self.actor(state), self.critic(state).squeeze(1)


def train(agent, steps, carts=32, horizon=32, gamma=0.99):
    """A tick that the pole stays up is worth 1 - gamma, so that a value lies between 0 and 1."""
    optimizer = torch.optim.Adam(agent.parameters(), lr=3e-3)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.1, steps)
    world = CartPole(carts)
    lengths, curve = [], []
    progress = tqdm(range(steps), desc="training", unit="step")
    for _ in progress:
        log_probs, entropies, values, rewards, keeps = [], [], [], [], []
        for _ in range(horizon):
            logits, value = agent(world.state)
            policy = torch.distributions.Categorical(logits=logits)
            action = policy.sample()
            fell, ended, last, finished = world.step(action)
            with (
                torch.no_grad()
            ):  # an episode cut by the clock would have gone on: its end is worth what the critic says
                reward = 1 - gamma + gamma * agent(last)[1] * (ended & ~fell)
            log_probs.append(policy.log_prob(action))
            entropies.append(policy.entropy())
            values.append(value)
            rewards.append(reward)
            keeps.append(~ended)
            lengths += finished
        with torch.no_grad():
            target = agent(world.state)[1]
        targets = []
        for reward, keep in zip(reversed(rewards), reversed(keeps)):
            target = reward + gamma * target * keep
            targets.append(target)
        targets = torch.stack(targets[::-1])  # (horizon, carts)
        values = torch.stack(values)
        advantage = (
            targets - values.detach()
        )  # the baseline: a number for the actor, not a path to the critic
        actor_loss = -(torch.stack(log_probs) * advantage / (advantage.std() + 1e-6)).mean()
        critic_loss = F.mse_loss(values, targets)
        optimizer.zero_grad()
        (actor_loss + 0.5 * critic_loss - 0.01 * torch.stack(entropies).mean()).backward()
        nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
        optimizer.step()
        schedule.step()
        recent = lengths[-50:]
        curve.append(sum(recent) / max(len(recent), 1))
        progress.set_postfix(length=f"{curve[-1]:.0f}", refresh=False)
    return curve


@torch.no_grad()
def evaluate(agent, carts=50):
    """The mean length of first episodes, taking the likelier action."""
    world = CartPole(carts)
    up, lengths = torch.ones(carts, dtype=torch.bool), torch.zeros(carts)
    for _ in range(LIMIT):
        lengths += up
        fell, ended, _, _ = world.step(agent(world.state)[0].argmax(1))
        up &= ~ended
    return lengths.mean().item()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--plot", default="actor_critic.svg")
    options = parser.parse_args()
    torch.manual_seed(0)
    agent = Agent()
    before = evaluate(agent)
    curve = train(agent, options.steps)
    print(
        f"the pole stays up for {before:.0f} steps before training, {evaluate(agent):.0f} after (limit {LIMIT})"
    )
    save_svg(
        options.plot,
        {"mean of the last 50 episodes": curve},
        title="Balancing a pole",
        x="update",
        y="steps",
    )
    print(f"plot: {options.plot}")


if __name__ == "__main__":
    main()
