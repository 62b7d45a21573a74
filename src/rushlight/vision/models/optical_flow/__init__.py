"""Models of the motion between two images: RAFT."""

from .raft import *
