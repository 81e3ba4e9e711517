"""Lets proxmoxer do with a Proxmox VE cluster what a fleet does, once with a ticket and once with a token, and prints each step."""

import os
import time

from proxmoxer import ProxmoxAPI, ResourceException
from proxmoxer.tools import Tasks


def story(login, proxmox):
    def wait(upid):
        status = Tasks.blocking_status(proxmox, upid, timeout=20, polling_interval=0.01)
        assert status["exitstatus"] == "OK", status

    release = proxmox.version.get()["release"]
    print(f"{login}: version {release}, {len(proxmox.nodes.get())} nodes")
    granted = proxmox.access.permissions.get()
    print(f"{login}: may clone {str('VM.Clone' in granted['/vms/9000' if login == 'token' else '/vms']).lower()}")
    (cluster,) = [entry for entry in proxmox.cluster.status.get() if entry["type"] == "cluster"]
    pools = [pool["poolid"] for pool in proxmox.pools.get()]
    print(f"{login}: cluster {cluster['name']}, quorum {cluster['quorate']}, pools {','.join(pools)}")
    bridges = [interface["iface"] for interface in proxmox.nodes("pve1").network.get(type="bridge")]
    vnets = [vnet["vnet"] for vnet in proxmox.cluster.sdn.vnets.get()]
    print(f"{login}: bridges {','.join(bridges)}, VNets {','.join(vnets)}")
    qemu = proxmox.nodes("pve1").qemu
    vmid = proxmox.cluster.nextid.get()
    clone = qemu(9000).clone.post(newid=vmid, name="from-python", description="owner", pool="virtpilot")
    active = proxmox.nodes("pve1").tasks.get(source="active", typefilter="qmclone")
    print(f"{login}: is cloning {str([task['upid'] for task in active] == [clone]).lower()}")
    wait(clone)
    log = proxmox.nodes("pve1").tasks(clone).log.get(limit=500)
    print(f"{login}: log {log[-1]['t']}")
    machine = qemu(vmid)
    is_template = str(qemu(9000).config.get().get("template") == 1).lower()
    print(f"{login}: cloned {machine.config.get()['name']}, template {is_template}")
    wait(machine.config.post(cores=3, tags="a;b"))
    machine.config.put(onboot=False, digest=machine.config.get()["digest"])
    wait(machine.resize.put(disk="scsi0", size="+1G"))
    wait(machine.status.start.post())
    status = machine.status.current.get()
    print(f"{login}: {status['status']} with {status['cpus']} cores and tags {status['tags']}")
    print(f"{login}: address {address(machine)}")
    print(f"{login}: guest {refused(lambda: guest(login, machine.agent))}")
    print(f"{login}: running: {refused(machine.delete)}")
    wait(machine.status.stop.post())
    wait(machine.delete(purge=1))
    print(f"{login}: missing: {refused(machine.config.get)}")
    local = proxmox.nodes("pve1").storage("local")
    with open(os.environ["PVE_ISO"], "rb") as iso:
        wait(local.upload.post(content="iso", filename=iso))
    assert [volume["volid"] for volume in local.content.get(content="iso")] == ["local:iso/seed.iso"]
    wait(local.content("local:iso/seed.iso").delete())
    print(f"{login}: wrong: {refused(lambda: qemu(9000).clone.post(newid=5))}")
    print(f"{login}: {len(proxmox.cluster.resources.get(type='vm'))} VM left, done")


def guest(login, agent):
    """Writes a file, reads it and runs a command."""
    agent.ping.post()
    agent("file-write").post(file="/tmp/a", content="hello")
    content = agent("file-read").get(file="/tmp/a")["content"]
    pid = agent.exec.post(**{"command": ["/bin/sh", "-s"], "input-data": "true"})["pid"]
    for _ in range(200):
        status = agent("exec-status").get(pid=pid)
        if status["exited"]:
            print(f"{login}: guest says {content}, exit code {status['exitcode']}")
            return
        time.sleep(0.02)


def address(machine):
    """Asks until the guest agent runs."""
    for _ in range(200):
        try:
            return machine.agent("network-get-interfaces").get()["result"][1]["ip-addresses"][0]["ip-address"]
        except ResourceException as error:
            assert error.content == "QEMU guest agent is not running", error
            time.sleep(0.02)
    return "none"


def refused(action):
    try:
        action()
    except ResourceException as error:
        return f"{error.status_code} {error.content}" + (f" {error.errors}" if error.errors else "")
    return "not refused"


host = os.environ["PVE_ADDRESS"].removeprefix("https://")
user, _, token = os.environ["PVE_TOKEN"].partition("!")
name, _, secret = token.partition("=")
options = {"host": host, "verify_ssl": os.environ["PVE_CA"]}
story("ticket", ProxmoxAPI(user=os.environ["PVE_USER"], password=os.environ["PVE_PASSWORD"], **options))
story("token", ProxmoxAPI(user=user, token_name=name, token_value=secret, **options))
