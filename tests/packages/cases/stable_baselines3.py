"""stable-baselines3, gymnasium: PPO, A2C and DQN on CartPole for some hundred steps, seeded."""

import gymnasium as gym
import numpy as np
from stable_baselines3 import A2C, DQN, PPO


def run():
    out = {}
    made = dict(
        ppo=lambda env: PPO("MlpPolicy", env, seed=0, n_steps=64, batch_size=32, n_epochs=2, device="cpu"),
        a2c=lambda env: A2C("MlpPolicy", env, seed=0, device="cpu"),
        dqn=lambda env: DQN("MlpPolicy", env, seed=0, learning_starts=50, device="cpu", buffer_size=500),
    )
    for name, make in made.items():
        model = make(gym.make("CartPole-v1"))
        model.learn(128 if name != "a2c" else 60)
        obs = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32) * 0.1
        out[name] = [
            model.predict(obs, deterministic=True)[0].tolist(),
            float(sum(p.detach().double().abs().sum() for p in model.policy.parameters())),
        ]
    return out
