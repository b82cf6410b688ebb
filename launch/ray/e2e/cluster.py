"""A Ray cluster of fake TPU hosts for tests: every node a real raylet on loopback, with the labels, resources and environment of a TPU host.

Reads one JSON command a line and answers each with one JSON line: add, kill, wait, and, when standard input ends, the end
of every process. Nodes die with this process, however that ends (PR_SET_PDEATHSIG).
"""

import json
import os
import signal
import sys
import time

answers = os.fdopen(os.dup(1), "w", buffering=1)
os.dup2(2, 1)  # what Ray prints is no answer

import ray  # noqa: E402
from ray import cluster_utils  # noqa: E402
from ray._private import services, utils  # noqa: E402

TEMP = sys.argv[1]
DASHBOARD = "127.0.0.1"
HEAD = "127.0.0.2"  # of 127.0.0.1 Ray makes the address of an interface that others see

write_address = utils.write_ray_address  # into the cluster's own folder, not into the one that all clusters of a machine share

get_node = services.get_node


def wait_for_node(*args):
    """Waits for a raylet to appear: Ray gives it 30 s, which a busy machine does not keep to."""
    deadline = time.monotonic() + 600
    while True:
        try:
            return get_node(*args)
        except RuntimeError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


services.get_node = wait_for_node

cluster = cluster_utils.Cluster()
nodes = {}


def add(name, environment, **params):
    """Starts a node whose processes, and so its workers, have the environment."""
    for key in [k for k in os.environ if k.startswith(("TPU_", "MEGASCALE_"))]:
        del os.environ[key]
    os.environ.update(environment)
    params.setdefault("num_cpus", 1)
    params.setdefault("node_ip_address", HEAD)
    # Each node unpacks jobs into a folder of its own, as on machines of their own: Ray removes what it finds there first.
    folder = os.path.join(TEMP, name.replace("/", ""))
    if name == "head":
        utils.write_ray_address = lambda address, *_: write_address(address, folder)
    node = cluster.add_node(
        wait=False, temp_dir=folder, object_store_memory=80_000_000, dashboard_host=DASHBOARD, **params)
    nodes[name] = node
    return {"id": node.node_id, "address": cluster.address, "dashboard": "http://" + node.webui_url if node.webui_url else ""}


def kill(name):
    """Takes a node's processes away at once, as a lost machine does."""
    node = nodes.pop(name)
    pids = [p.process.pid for kind in node.all_processes.values() for p in kind]
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    for kind in node.all_processes.values():
        for p in kind:
            p.process.wait()
    cluster.worker_nodes.discard(node)
    if cluster.head_node is node:
        cluster.head_node = None
    return {"pids": pids}


commands = {"add": add, "kill": kill, "wait": lambda timeout: cluster.wait_for_nodes(timeout) or {}}

for line in sys.stdin:
    command = json.loads(line)
    try:
        answer = commands[command.pop("op")](**command)
    except Exception as err:
        answer = {"error": "%s: %s" % (type(err).__name__, err)}
    answers.write(json.dumps(answer) + "\n")

cluster.shutdown()
