"""Runs `cloud-init devel net-convert` for several jobs in one process, without looking at the interfaces of this machine."""
import contextlib
import io
import json
import sys

from cloudinit import net
from cloudinit.cmd.devel import net_convert
from cloudinit.net import network_state

request = json.loads(sys.argv[1])
names = request["names"]
net.get_interfaces_by_mac = network_state.get_interfaces_by_mac = lambda: dict(names)
for job in request["jobs"]:
    known = [option for mac, name in names.items() for option in ("-m", f"{name},{mac}")]
    options = ["-p", job["file"], "-k", job["kind"], "-O", job["renderer"], "-D", job["distro"], "-d", job["out"]]
    arguments = net_convert.get_parser().parse_args(options + known)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        net_convert.handle_args("net-convert", arguments)
