"""Runs weft on whole TPU slices of a Ray cluster: one process a host.

weft uploads this file with its binary; `ray job submit` can run it by hand. It needs nothing but Ray. The collectives
are XLA's, within libtpu: Ray reserves the slices, starts the processes and starts them again.

Exit codes: 0 done; 2 wrong usage or input, which is not tried again; 75 stopped on request, or no free slice: the same
job continues later; 1 failed more often than --max-failures.
"""

import argparse
import base64
import collections
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

import ray
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

USAGE, RETRY, FAILED = 2, 75, 1
# How long the hosts get when one of them is lost: the others wait in a collective that never ends, so nothing is to be
# gained by more.
ORPHAN_SECONDS = 5
# How long one look for new lines waits in the host's actor.
POLL_SECONDS = 1.0
# How long a host may be silent: a machine that vanishes closes no connection, and Ray's own health check takes longer.
SILENT_SECONDS = 20
# More than this between two looks at the clock is time in which the driver stood still (a stopped process, a machine that is
# moved or out of breath): what it did not hear meanwhile says nothing of the hosts.
ASLEEP_SECONDS = 5
# What the line of weft's watchdog has in it: its host ends with 75 too, but that is a failure, which may come back each time.
STALLED = ("stood still in ", "longer than its limit")
# Where weft ray submit puts what --env was given: Ray prints a job's command line into its log, and a token is not to be there.
# It is JSON in base64, since Ray replaces what looks like a variable ($NAME) in values.
ENV_VARIABLE = "WEFT_RAY_ENV"
TOPOLOGY_LABEL, POD_LABEL = "ray.io/tpu-topology", "ray.io/tpu-pod-type"
SLICE_LABEL, WORKER_LABEL = "ray.io/tpu-slice-name", "ray.io/tpu-worker-id"


def say(text):
    print("weft ray: " + text, flush=True)


@ray.remote(num_cpus=0, max_restarts=0, max_concurrency=4)
class Host:
    """The process of weft on one TPU host."""

    def __init__(self):
        self.process = None
        self.lines = collections.deque()
        self.changed = threading.Condition()
        self.ended = False

    def about(self):
        """Where this is, and what the node's environment says of the slice."""
        context = ray.get_runtime_context()
        env = {k: v for k, v in os.environ.items() if k.startswith(("TPU_", "MEGASCALE_"))}
        return {
            "node": context.get_node_id(),
            "ip": ray.util.get_node_ip_address(),
            "hostname": socket.gethostname(),
            "env": env,
        }

    def start(self, argv, env):
        full = dict(os.environ)
        for name, value in env.items():
            if value is None:
                full.pop(name, None)
            else:
                full[name] = value
        binary = argv[0]
        if os.path.exists(binary):
            os.chmod(binary, 0o755)  # packages lose the mode of their files

        libc = ctypes.CDLL(None)

        def tie():
            # When this actor is ended by force, weft gets the same signal as from a person.
            libc.prctl(1, signal.SIGTERM)

        try:
            self.process = subprocess.Popen(
                argv, env=full, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                start_new_session=True, preexec_fn=tie,
            )
        except OSError as err:
            return "%s: %s" % (binary, err.strerror)
        # The guard outlives this actor: it sees the end of its standard input, and leaves nothing of weft on the chips.
        self.guard = subprocess.Popen(
            ["/bin/sh", "-c", "read line; kill -s TERM -- -$0; sleep %d; kill -s KILL -- -$0" % ORPHAN_SECONDS, str(self.process.pid)],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )
        threading.Thread(target=self._read, daemon=True).start()
        return None

    def _read(self):
        for raw in iter(self.process.stdout.readline, b""):
            with self.changed:
                self.lines.append(raw.decode("utf-8", "replace").rstrip("\r\n"))
                self.changed.notify_all()
        self.process.wait()
        self.guard.kill()
        self.guard.wait()
        with self.changed:
            self.ended = True
            self.changed.notify_all()

    def poll(self, seconds):
        """The lines since the last call, waiting for some, and the exit code once all of them are out."""
        with self.changed:
            if not self.lines and not self.ended:
                self.changed.wait(seconds)
            lines = list(self.lines)
            self.lines.clear()
            return lines, self.process.returncode if self.ended else None

    def signal(self, number):
        if self.process is not None and not self.ended:
            try:
                os.killpg(self.process.pid, number)
            except ProcessLookupError:
                pass


class Stopped(Exception):
    """The job was asked to stop."""


class NoSlice(Exception):
    """There is no free slice, at least not now."""


class Awake:
    """A clock of the time in which its reader runs."""

    def __init__(self):
        self.seconds, self.last = 0.0, time.monotonic()

    def read(self):
        now = time.monotonic()
        self.seconds += min(now - self.last, ASLEEP_SECONDS)
        self.last = now
        return self.seconds


class Placed:
    """A host with its place in the slice and its actor."""

    def __init__(self, actor, about, slice_name, worker):
        self.actor, self.about, self.slice, self.worker = actor, about, slice_name, worker
        self.code = None
        self.lost = None
        self.stalled = False  # its watchdog ended it
        self.heard = 0.0  # when it answered last, by the clock of follow

    @property
    def name(self):
        hosts = [h for h in self.about["env"].get("TPU_WORKER_HOSTNAMES", "").split(",") if h]
        if self.worker < len(hosts):
            return hosts[self.worker].split(".")[0]
        return "%s/%d" % (self.slice or self.about["hostname"], self.worker)

    @property
    def over(self):
        return self.code is not None or self.lost is not None


class Job:
    def __init__(self, options):
        self.options = options
        self.stop = threading.Event()
        self.handle = None
        self.first = ""  # what went wrong first in an attempt: what follows from it is no news
        self.deserted = False  # a host ended with 75 in an attempt and the others did not

    # Reservation

    def reserve(self):
        """Reserves the slices; self.handle then holds them. It waits in a thread, so that the job can be stopped meanwhile."""
        o, box = self.options, {}

        def ask():
            try:
                self.handle = tpu.slice_placement_group(
                    topology=o.topology, accelerator_version=o.accelerator_type, num_slices=o.num_slices,
                    head_reservation_timeout_s=o.reserve_timeout, bundle_label_selector=self.selector(),
                )
                box["group"] = self.handle.placement_group
                ray.get(box["group"].ready())
                self.handle.release_head_pgs()
                box["ready"] = True
            except BaseException as err:
                box["fault"] = err

        thread = threading.Thread(target=ask, daemon=True)
        thread.start()
        deadline = time.monotonic() + o.reserve_timeout
        while thread.is_alive() and time.monotonic() < deadline:
            if self.stop.wait(0.2):
                raise Stopped()
        fault = box.get("fault")
        if isinstance(fault, ValueError):
            raise fault
        if "ready" not in box:
            why = "not all hosts of it are free" if "group" in box else "none of this kind is free"
            if fault is not None and not isinstance(fault, TimeoutError):
                why = oneline(fault)
            raise NoSlice("within %g s %s" % (o.reserve_timeout, why))
        return box["group"]

    def selector(self):
        """Labels for a slice of one host, which Ray would put on any host with enough chips, also on one of a larger slice."""
        o = self.options
        hosts, _ = tpu.get_tpu_worker_resources(topology=o.topology, accelerator_type=o.accelerator_type)
        if hosts == 1 and any((n.get("Labels") or {}).get(TOPOLOGY_LABEL) for n in ray.nodes() if n.get("Alive")):
            return [{TOPOLOGY_LABEL: o.topology}] * o.num_slices
        return None

    def release(self):
        if self.handle is not None:
            self.handle.shutdown()
            self.handle = None

    def place(self, group):
        """One actor on each host, in the order of slices and workers."""
        per_host = self.handle.devices_per_host
        actors = [
            Host.options(
                resources={"TPU": per_host},
                scheduling_strategy=PlacementGroupSchedulingStrategy(placement_group=group, placement_group_bundle_index=i),
            ).remote()
            for i in range(self.handle.num_hosts)
        ]
        abouts = ray.get([a.about.remote() for a in actors], timeout=self.options.reserve_timeout)
        labels = {n["NodeID"]: n.get("Labels") or {} for n in ray.nodes()}
        hosts = []
        for actor, about in zip(actors, abouts):
            mine = labels.get(about["node"], {})
            worker = about["env"].get("TPU_WORKER_ID") or mine.get(WORKER_LABEL) or "0"
            name = mine.get(SLICE_LABEL) or about["env"].get("TPU_NAME") or ""
            hosts.append(Placed(actor, about, name, int(worker)))
        hosts.sort(key=lambda h: (h.slice, h.worker))
        per_slice = self.handle.num_hosts // self.options.num_slices
        found = collections.defaultdict(list)
        for h in hosts:
            found[h.slice].append(h.worker)
        for name, workers in found.items():
            if workers != list(range(per_slice)):
                raise ValueError(
                    "slice %s: its %d hosts call themselves workers %s, expected 0 to %d: check TPU_WORKER_ID or the label %s of its nodes"
                    % (name or "?", len(workers), workers, per_slice - 1, WORKER_LABEL))
        return hosts

    def environment(self, hosts, host):
        """What weft on one host must be told beyond the node's own environment."""
        mates = [h for h in hosts if h.slice == host.slice]
        env = {"TPU_WORKER_ID": str(host.worker)}
        if host.slice and "TPU_NAME" not in host.about["env"]:
            env["TPU_NAME"] = host.slice
        if "TPU_WORKER_HOSTNAMES" not in host.about["env"]:
            env["TPU_WORKER_HOSTNAMES"] = ",".join(m.about["ip"] for m in mates)
        if self.options.num_slices > 1:
            names = sorted({h.slice for h in hosts})
            env["MEGASCALE_NUM_SLICES"] = str(len(names))
            env["MEGASCALE_SLICE_ID"] = str(names.index(host.slice))
            env["MEGASCALE_COORDINATOR_ADDRESS"] = hosts[0].about["ip"]
            env["MEGASCALE_PORT"] = str(self.options.megascale_port)
        for pair in self.options.env:
            name, _, value = pair.partition("=")
            env[name] = value
        if ENV_VARIABLE in os.environ:
            env.update(json.loads(base64.b64decode(os.environ[ENV_VARIABLE])))
        env[ENV_VARIABLE] = None
        return env

    # One attempt

    def attempt(self, number):
        """Runs weft once on all hosts. Returns the hosts, all over."""
        group = self.reserve()
        hosts = self.place(group)
        say("attempt %d: %s on %d host(s): %s" % (
            number, self.options.topology, len(hosts), ", ".join("%s (%s)" % (h.name, h.about["ip"]) for h in hosts)))
        argv = [self.options.binary] + self.options.args
        started = [h.actor.start.remote(argv, self.environment(hosts, h)) for h in hosts]
        for h, ref in zip(hosts, started):
            try:
                fault = ray.get(ref)
            except ray.exceptions.RayError as err:
                h.lost = lost(err)
                continue
            if fault:
                h.lost = "weft does not start: " + fault
        self.follow(hosts)
        return hosts

    def follow(self, hosts):
        """Prints the lines of all hosts until all are over. One that fails ends the others."""
        clock = Awake()
        polls = {h.actor.poll.remote(POLL_SECONDS): h for h in hosts if not h.over}
        asked = None  # when the hosts were asked to end
        patience = None
        killed = False
        retired = None  # when the first host ended with 75
        while polls:
            done, _ = ray.wait(list(polls), num_returns=len(polls), timeout=POLL_SECONDS / 10)
            for ref in done:
                h = polls.pop(ref)
                h.heard = clock.read()
                self.take(h, ref)
                if not h.over:
                    polls[h.actor.poll.remote(POLL_SECONDS)] = h
            now = clock.read()
            for ref, h in list(polls.items()):
                if now - h.heard > SILENT_SECONDS:
                    h.lost = "is silent for %d s" % SILENT_SECONDS
                    ray.kill(h.actor)
                    del polls[ref]
            bad = [h for h in hosts if h.lost is not None or h.code not in (None, 0, RETRY)]
            if asked is None and (bad or self.stop.is_set()):
                asked = now
                patience = ORPHAN_SECONDS if bad else self.options.grace
                if bad:
                    self.first = "%s %s" % (bad[0].name, self.why(bad[0]))
                    say(self.first + ": stopping the other hosts")
                else:
                    say("asked to stop: each host finishes its step and saves")
                self.tell(hosts, signal.SIGTERM)
            if retired is None and any(h.code == RETRY for h in hosts):
                retired = now
            if asked is None and retired is not None and now - retired > self.options.grace:
                # It was stopped before its first step, ran out of its grace period, or stood still. The others wait for it.
                gone = next(h for h in hosts if h.code == RETRY)
                self.first, self.deserted = "%s %s" % (gone.name, self.why(gone)), True
                say(self.first + ", and the other hosts go on: stopping them")
                asked, patience = now, ORPHAN_SECONDS
                self.tell(hosts, signal.SIGTERM)
            if asked is not None and bad and patience > ORPHAN_SECONDS:
                patience, asked = ORPHAN_SECONDS, now  # a host was lost while all were saving
            if asked is not None and not killed and now - asked > patience:
                killed = True
                self.tell(hosts, signal.SIGKILL)
            elif killed and now - asked > patience + ORPHAN_SECONDS:
                for ref, h in list(polls.items()):
                    ray.kill(h.actor)
                    h.lost = h.lost or "does not answer"
                    del polls[ref]

    def take(self, h, ref):
        try:
            lines, h.code = ray.get(ref)
        except ray.exceptions.RayError as err:
            h.lost = lost(err)
            return
        for line in lines:
            h.stalled = h.stalled or all(part in line for part in STALLED)
            print("[%s] %s" % (h.name, line), flush=True)

    def tell(self, hosts, number):
        for h in hosts:
            if not h.over:
                h.actor.signal.remote(number)

    def why(self, h):
        if h.lost is not None:
            return h.lost
        if h.stalled:
            return "stood still"
        if h.code is not None and h.code < 0:
            return "was killed by signal %d" % -h.code
        return "ended with exit code %s" % h.code

    def worst(self, hosts):
        return "; ".join("%s %s" % (h.name, self.why(h)) for h in hosts if h.stalled or h.code not in (0, RETRY))

    # All attempts

    def run(self):
        o = self.options
        failures, number = 0, 0
        while True:
            number += 1
            hosts, fault, self.first, self.deserted = [], None, "", False
            try:
                hosts = self.attempt(number)
            except Stopped:
                return RETRY
            except NoSlice as err:
                say("no slice: %s. %s" % (err, self.offer()))
                return RETRY
            except (RuntimeError, ValueError, TimeoutError, ray.exceptions.RayError) as err:
                fault = err
            finally:
                self.release()
            if isinstance(fault, ValueError):
                say("%s" % fault)
                return USAGE
            codes = [h.code for h in hosts]
            if hosts and all(c == 0 for c in codes):
                return 0
            if USAGE in codes:
                return USAGE
            if self.stop.is_set():
                return RETRY if all(c in (0, RETRY) for c in codes) else FAILED
            missing = [h for h in hosts if h.lost and h.lost.startswith("weft does not start")]
            if missing:
                say("%s: %s: give --binary, or an image that holds it" % (missing[0].name, missing[0].lost))
                return USAGE
            preempted = self.deserted or all(c in (0, RETRY) for c in codes)
            if hosts and preempted and not any(h.stalled or h.lost for h in hosts):
                say("preempted: starting again from what was saved")
                continue
            failures += 1
            reason = oneline(fault) if fault is not None else self.first or self.worst(hosts)
            if failures > o.max_failures:
                say("failed %d time(s), which is more than --max-failures %d: %s" % (failures, o.max_failures, reason))
                return FAILED
            say("failure %d of at most %d: %s: starting again from the last checkpoint" % (failures, o.max_failures, reason))

    def offer(self):
        """What slices the cluster has, for a person whose slice is not among them."""
        seen = collections.Counter()
        for n in ray.nodes():
            l = n.get("Labels") or {}
            if n.get("Alive") and l.get(TOPOLOGY_LABEL):
                seen[(l.get(POD_LABEL, "?"), l[TOPOLOGY_LABEL], l.get(SLICE_LABEL, "?"))] += 1
        if not seen:
            return "This cluster has no TPU node."
        return "This cluster has " + ", ".join("%s (%s, %s, %d host(s))" % (name, pod, top, n) for (pod, top, name), n in sorted(seen.items())) + "; what fits is in use or not whole."


def lost(err):
    return "is lost (%s)" % type(err).__name__


def oneline(err):
    return " ".join(str(err).split())


def parse(argv):
    p = argparse.ArgumentParser(prog="weft_driver.py", description=__doc__.split("\n")[0])
    p.add_argument("--topology", required=True)
    p.add_argument("--accelerator-type", required=True)
    p.add_argument("--num-slices", type=int, default=1)
    p.add_argument("--max-failures", type=int, default=3)
    p.add_argument("--grace", type=float, default=35)
    p.add_argument("--reserve-timeout", type=float, default=100)
    p.add_argument("--megascale-port", type=int, default=8081)
    p.add_argument("--binary", default="./weft")
    p.add_argument("--env", action="append", default=[], metavar="NAME=VALUE")
    p.add_argument("args", nargs=argparse.REMAINDER)
    o = p.parse_args(argv)
    if o.args[:1] == ["--"]:
        o.args = o.args[1:]
    if not o.args:
        p.error("end the line with -- and what weft is to do, such as -- finetune --model-id …")
    return o


def main(argv):
    global tpu
    job = Job(parse(argv))
    try:
        from ray.util import tpu

        tpu.slice_placement_group, tpu.get_tpu_worker_resources
    except (ImportError, AttributeError):
        say("Ray %s cannot reserve whole TPU slices: run the cluster with a newer one (weft is tested with 2.58)" % ray.__version__)
        return USAGE
    ray.init(log_to_driver=False, logging_level="WARNING")
    for number in (signal.SIGTERM, signal.SIGINT):  # after ray.init, which takes SIGTERM for itself
        signal.signal(number, lambda *_: job.stop.set())
    code = job.run()
    say({0: "done", USAGE: "wrong usage or input", RETRY: "stopped; submit the same job again to continue"}.get(code, "failed"))
    return code


if __name__ == "__main__":
    code = main(sys.argv[1:])
    sys.stdout.flush()
    os._exit(code)  # a thread may still wait for a slice; what was reserved ends with this process
