"""A stopping rule that kills the process it runs in, once: a worker that is lost in the middle of a run."""

import os
import signal
from dataclasses import dataclass
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class KillsOnce:
    """Descends down to a level; the first process other than ``spared`` that asks it at that level is killed."""

    level: int
    flag: Path
    spared: int

    def descend(self, eta: np.ndarray, sizes: np.ndarray, rewards: np.ndarray, level: int) -> np.ndarray:
        if level == self.level and os.getpid() != self.spared:
            try:
                os.close(os.open(self.flag, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                pass
            else:
                os.kill(os.getpid(), signal.SIGKILL)
        return np.full(len(eta), level < self.level)


@dataclass(frozen=True)
class NoRoom:
    """Has memory for ``room`` items in any process but ``spared``; with ``killed``, the system ends that process."""

    spared: int
    killed: bool
    room: int = 0

    def descend(self, eta: np.ndarray, sizes: np.ndarray, rewards: np.ndarray, level: int) -> np.ndarray:
        if os.getpid() != self.spared and len(eta) > self.room:
            if self.killed:
                os.kill(os.getpid(), signal.SIGKILL)
            raise MemoryError
        return np.full(len(eta), level < 1)
