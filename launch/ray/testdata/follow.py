"""Holds the driver to what it does about hosts that end with 75, with a ray and a clock of its own: python3 follow.py DRIVER."""

import base64
import importlib.util
import os
import sys
import types


class RayError(Exception):
    pass


class Ref:
    def __init__(self, host):
        self.host = host


class Actor:
    """A host that gives lines and an exit code at its n-th poll, or runs on until it is told to end."""

    def __init__(self, lines, code, after=0):
        self.lines, self.code, self.after, self.told = lines, code, after, []
        self.poll = types.SimpleNamespace(remote=lambda seconds: Ref(self))
        self.start = types.SimpleNamespace(remote=lambda argv, env: Ref(types.SimpleNamespace(answer=lambda: self.begin(env))))
        self.signal = types.SimpleNamespace(remote=self.take)

    def take(self, number):
        self.told.append(int(number))
        if int(number) == 9 and self.code is None:
            self.code = -9

    def begin(self, env):
        self.env = env

    def answer(self):
        self.after -= 1
        lines, self.lines = self.lines, []
        return lines, self.code if self.after < 0 or self.code == -9 else None


class Clock:
    """Time that passes only while the driver waits; stall is how much more goes by at the n-th of its waits."""

    def __init__(self):
        self.now, self.waits, self.stall = 0.0, 0, {}
        self.never = Ref(None)  # an answer that does not come

    def monotonic(self):
        return self.now

    def wait(self, refs, num_returns, timeout):
        self.waits += 1
        stalled = self.stall.get(self.waits, 0)
        self.now += 0.005 + stalled
        done = [r for r in refs if r is not self.never and not stalled]
        return done, [r for r in refs if r not in done]


clock = Clock()


def kill(actor):
    actor.told.append("killed")


def fake():
    ray = types.ModuleType("ray")
    ray.remote = lambda *a, **k: lambda cls: cls
    ray.get, ray.wait, ray.kill = lambda ref: ref.host.answer(), lambda *a, **k: clock.wait(*a, **k), kill
    ray.exceptions = types.SimpleNamespace(RayError=RayError)
    strategies = types.ModuleType("ray.util.scheduling_strategies")
    strategies.PlacementGroupSchedulingStrategy = object
    sys.modules.update({"ray": ray, "ray.util": types.ModuleType("ray.util"), "ray.util.scheduling_strategies": strategies})


def load(path):
    spec = importlib.util.spec_from_file_location("driver", path)
    driver = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(driver)
    driver.time = clock
    return driver


def run(driver, attempts, failures, stall=None):
    """Runs a job whose attempts have these actors; returns its exit code and the attempts it took."""
    clock.__init__()
    clock.stall = stall or {}
    job = driver.Job(driver.parse(["--topology", "4x4", "--accelerator-type", "x", "--grace", "0.1", "--max-failures", str(failures), "--", "w"]))
    made = iter(attempts)
    count = [0]

    def attempt(number):
        count[0] = number
        hosts = [driver.Placed(a, {"env": {}, "hostname": "h"}, "s", i) for i, a in enumerate(next(made))]
        job.follow(hosts)
        return hosts

    job.attempt = attempt
    return job.run(), count[0]


def main():
    fake()
    driver = load(sys.argv[1])

    deaf = Actor([], None)
    assert run(driver, [[Actor([], 7), deaf]], 0) == (1, 1), "a host failed"
    assert deaf.told == [15, 9] and clock.now < 10, "the others are stopped within 10 s: %s, %g s" % (deaf.told, clock.now)
    driver.ORPHAN_SECONDS = 0.05

    done = lambda: [Actor([], 0), Actor([], 0)]
    stall = 'level=ERROR msg="host s stood still in step 3 for 30m0s, longer than its limit of 30m0s: stacks are in x"'

    hangs = Actor([], None)
    assert run(driver, [[Actor([], 75), hangs], done()], 0) == (0, 2), "one that others are left behind by is no failure"
    assert hangs.told == [15, 9], hangs.told

    late = Actor([], 75, after=3)
    assert run(driver, [[Actor([], 75), late], done()], 0) == (0, 2), "all preempted"
    assert late.told == [], late.told

    first = Actor([], 0, after=40)
    assert run(driver, [[Actor([], 0), first]], 0) == (0, 1), "one that ends after the others, which is done, is left alone"
    assert first.told == [], first.told

    assert run(driver, [[Actor([stall], 75), Actor([], None)], done()], 1) == (0, 2), "a watchdog's end begins again"
    assert run(driver, [[Actor([stall], 75), Actor([stall], 75)]], 0) == (1, 1), "and counts"

    silent = Actor([], None)
    silent.signal.remote = lambda number: None  # nothing gets through to it
    silent.poll.remote = lambda seconds: clock.never
    assert run(driver, [[Actor([], 0), silent], done()], 1) == (0, 2), "a host that vanished is lost"
    assert silent.told == ["killed"], silent.told

    slow = [Actor([], 0, after=40), Actor([], 0, after=40)]
    assert run(driver, [slow], 0, stall={20: 3600}) == (0, 1), "where the driver itself stood still, no host was silent"
    assert [h.told for h in slow] == [[], []], slow

    gone, left = Actor([], None), Actor([], None)

    def die(env):
        raise RayError()

    gone.begin = die
    job = driver.Job(driver.parse(["--topology", "4x4", "--accelerator-type", "x", "--max-failures", "0", "--", "w"]))
    hosts = [driver.Placed(a, {"env": {}, "hostname": "h", "ip": "1.2.3.4"}, "s", i) for i, a in enumerate([gone, left])]
    job.reserve, job.place = lambda: None, lambda group: hosts
    assert job.run() == 1
    assert hosts[0].lost == "is lost (RayError)" and left.told == [15, 9], "one that is lost while weft starts is named, and the others end"
    assert job.first == "s/0 is lost (RayError)", job.first

    os.environ["WEFT_RAY_ENV"] = base64.b64encode(b'{"HF_TOKEN": "t$X"}').decode()
    job = driver.Job(driver.parse(["--topology", "4x4", "--accelerator-type", "x", "--env", "A=b=c", "--", "w"]))
    host = driver.Placed(None, {"env": {}, "hostname": "h", "ip": "1.2.3.4"}, "s", 0)
    env = job.environment([host], host)
    assert (env["HF_TOKEN"], env["A"], env["WEFT_RAY_ENV"]) == ("t$X", "b=c", None), env
    print("held")


main()
