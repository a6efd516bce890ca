"""Workers and jobs for tests of executors; sent to processes by value."""

import os
import time
from pathlib import Path

import numpy as np


class Adder:
    """Adds up what it is told, and what others tell."""

    def __init__(self, common, partition, memory_saving):
        self.common, self.partition, self.memory_saving = common, partition, memory_saving
        self.total = np.zeros(1)

    def add(self, number):
        self.total += number * self.partition
        return float(self.total[0])

    def give(self):
        return np.full(1, self.total[0])

    def take(self, everything):
        self.total += everything

    def seconds(self, number):
        time.sleep(number)
        return os.getpid()

    def refuse(self):
        from ramify.errors import InputError

        raise InputError("a worker refuses.")

    def need(self, saving):
        if self.memory_saving < saving:
            raise MemoryError("too much")
        return self.memory_saving

    def first_of_common(self):
        return [float(self.common[0]), bool(self.common.flags.writeable)]

    def place_of_common(self):
        """The file in shared memory that the array is in, and where in it."""
        address = self.common.ctypes.data
        for line in Path("/proc/self/maps").read_text().splitlines():
            reach, _, offset, _, inode = line.split()[:5]
            first, last = (int(number, 16) for number in reach.split("-"))
            if first <= address < last:
                return [int(inode), int(offset, 16) + address - first]
        raise LookupError("the array is nowhere")

    def state(self):
        return {"total": self.total}

    def restore(self, state):
        self.total = state["total"]


def add_up(parts):
    return np.sum(parts, axis=0)


def multiply(common, block):
    return common * block


def fail_at_three(common, block):
    from ramify.errors import InputError

    if block == 3:
        raise InputError("three is too many.")
    return block


def die_once(common, block):
    """Ends its process the first time."""
    path = f"{common}/{block}"
    if not os.path.exists(path):
        open(path, "w").close()
        os._exit(1)
    return block


def needs_much_once(common, block):
    path = f"{common}/{block}"
    if not os.path.exists(path):
        open(path, "w").close()
        raise MemoryError("too much")
    return block
