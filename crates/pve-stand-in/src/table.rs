//! All calls that are served.

use crate::calls::{access, agent, clone, cluster, config as config_calls, node, pool, power, qemu, storage, task};
use crate::config;
use crate::request::Method::{Delete, Get, Post, Put};
use crate::route::{Kind, Param, Route, Run};

const fn optional(name: &'static str, kind: Kind) -> Param {
    Param { name, is_required: false, kind }
}

const fn required(name: &'static str, kind: Kind) -> Param {
    Param { name, is_required: true, kind }
}

const fn route(method: crate::Method, path: &'static str, params: &'static [Param], run: Run) -> Route {
    Route { method, path, params, run }
}

const VMID: Kind = Kind::Number { min: 100, max: 999_999_999 };
const NUMBER: Kind = Kind::Number { min: 0, max: u64::MAX >> 1 };
const POOL_MEMBERS: Kind = Kind::OneOf(&["qemu", "lxc", "storage"]);
const INTERFACES: Kind = Kind::OneOf(&[
    "bridge",
    "bond",
    "eth",
    "alias",
    "vlan",
    "fabric",
    "OVSBridge",
    "OVSBond",
    "OVSPort",
    "OVSIntPort",
    "vnet",
    "any_bridge",
    "any_local_bridge",
    "include_sdn",
]);
const CHECKSUMS: Kind = Kind::OneOf(&["md5", "sha1", "sha224", "sha256", "sha384", "sha512"]);

/// The parameters of a change by a task: those of a synchronous one, and how long the request waits for it.
const TASK_CONFIG: [Param; 53] = {
    let mut params = [optional("background_delay", Kind::Number { min: 1, max: 30 }); 53];
    let mut at = 0;
    while at < config::PARAMS.len() {
        params[at] = config::PARAMS[at];
        at += 1;
    }
    params
};

/// All calls that are served, with the parameters that they accept.
pub const ROUTES: &[Route] = &[
    route(Get, "/version", &[], access::version),
    route(Get, "/access/ticket", &[], access::ticket_form),
    route(
        Post,
        "/access/ticket",
        &[
            required("username", Kind::Text),
            required("password", Kind::Text),
            optional("realm", Kind::Text),
            optional("otp", Kind::Text),
            optional("path", Kind::Text),
            optional("privs", Kind::Text),
            optional("new-format", Kind::Flag),
            optional("tfa-challenge", Kind::Text),
        ],
        access::ticket,
    ),
    route(
        Get,
        "/access/permissions",
        &[optional("path", Kind::Text), optional("userid", Kind::Text)],
        access::permissions,
    ),
    route(
        Get,
        "/cluster/resources",
        &[optional("type", Kind::OneOf(&["vm", "storage", "node", "sdn"]))],
        cluster::resources,
    ),
    route(Get, "/cluster/status", &[], cluster::status),
    route(Get, "/cluster/sdn/vnets", &[], cluster::vnets),
    route(Get, "/cluster/nextid", &[optional("vmid", VMID)], cluster::nextid),
    route(Get, "/nodes", &[], node::list),
    route(Get, "/nodes/{node}/status", &[], node::status),
    route(Get, "/nodes/{node}/time", &[], node::time),
    route(Get, "/nodes/{node}/network", &[optional("type", INTERFACES)], node::network),
    route(
        Get,
        "/nodes/{node}/storage",
        &[
            optional("content", Kind::Text),
            optional("enabled", Kind::Flag),
            optional("format", Kind::Flag),
            optional("storage", Kind::Text),
            optional("target", Kind::Text),
        ],
        storage::list,
    ),
    route(Get, "/nodes/{node}/storage/{storage}/status", &[], storage::status),
    route(
        Get,
        "/nodes/{node}/storage/{storage}/content",
        &[optional("content", Kind::Text), optional("vmid", VMID)],
        storage::content,
    ),
    route(
        Post,
        "/nodes/{node}/storage/{storage}/upload",
        &[
            required("content", Kind::OneOf(&["iso", "vztmpl", "import"])),
            required("filename", Kind::Short(255)),
            optional("checksum", Kind::Text),
            optional("checksum-algorithm", CHECKSUMS),
            optional("tmpfilename", Kind::Text),
        ],
        storage::upload,
    ),
    route(Get, "/nodes/{node}/storage/{storage}/content/{volume}", &[], storage::volume),
    route(
        Delete,
        "/nodes/{node}/storage/{storage}/content/{volume}",
        &[optional("delay", Kind::Number { min: 1, max: 30 })],
        storage::delete,
    ),
    route(
        Get,
        "/nodes/{node}/tasks",
        &[
            optional("errors", Kind::Flag),
            optional("limit", NUMBER),
            optional("source", Kind::OneOf(&["archive", "active", "all"])),
            optional("start", NUMBER),
            optional("typefilter", Kind::Text),
            optional("vmid", VMID),
        ],
        task::list,
    ),
    route(Delete, "/nodes/{node}/tasks/{upid}", &[], task::stop),
    route(Get, "/nodes/{node}/tasks/{upid}/status", &[], task::status),
    route(Get, "/nodes/{node}/tasks/{upid}/log", &[optional("start", NUMBER), optional("limit", NUMBER)], task::log),
    route(Get, "/nodes/{node}/qemu", &[optional("full", Kind::Flag)], qemu::list),
    route(
        Delete,
        "/nodes/{node}/qemu/{vmid}",
        &[
            optional("destroy-unreferenced-disks", Kind::Flag),
            optional("purge", Kind::Flag),
            optional("skiplock", Kind::Flag),
        ],
        qemu::destroy,
    ),
    route(
        Post,
        "/nodes/{node}/qemu/{vmid}/clone",
        &[
            required("newid", VMID),
            optional("bwlimit", NUMBER),
            optional("description", Kind::Text),
            optional("format", Kind::OneOf(&["raw", "qcow2", "vmdk"])),
            optional("full", Kind::Flag),
            optional("name", Kind::DnsName),
            optional("pool", Kind::Text),
            optional("storage", Kind::Text),
            optional("target", Kind::Text),
        ],
        clone::clone,
    ),
    route(Get, "/nodes/{node}/qemu/{vmid}/config", &[optional("current", Kind::Flag)], config_calls::read),
    route(Put, "/nodes/{node}/qemu/{vmid}/config", &config::PARAMS, config_calls::update),
    route(Post, "/nodes/{node}/qemu/{vmid}/config", &TASK_CONFIG, config_calls::update_by_task),
    route(
        Put,
        "/nodes/{node}/qemu/{vmid}/resize",
        &[
            required("disk", Kind::Text),
            required("size", Kind::Size),
            optional("digest", Kind::Short(40)),
            optional("skiplock", Kind::Flag),
        ],
        config_calls::resize,
    ),
    route(Get, "/nodes/{node}/qemu/{vmid}/cloudinit", &[], config_calls::cloudinit),
    route(Put, "/nodes/{node}/qemu/{vmid}/cloudinit", &[], config_calls::regenerate_cloudinit),
    route(Get, "/nodes/{node}/qemu/{vmid}/status/current", &[], power::current),
    route(
        Post,
        "/nodes/{node}/qemu/{vmid}/status/start",
        &[optional("skiplock", Kind::Flag), optional("timeout", NUMBER)],
        power::start,
    ),
    route(
        Post,
        "/nodes/{node}/qemu/{vmid}/status/stop",
        &[
            optional("keepActive", Kind::Flag),
            optional("overrule-shutdown", Kind::Flag),
            optional("skiplock", Kind::Flag),
            optional("timeout", NUMBER),
        ],
        power::stop,
    ),
    route(
        Post,
        "/nodes/{node}/qemu/{vmid}/status/shutdown",
        &[
            optional("forceStop", Kind::Flag),
            optional("keepActive", Kind::Flag),
            optional("skiplock", Kind::Flag),
            optional("timeout", NUMBER),
        ],
        power::shutdown,
    ),
    route(Post, "/nodes/{node}/qemu/{vmid}/agent/ping", &[], agent::ping),
    route(Get, "/nodes/{node}/qemu/{vmid}/agent/network-get-interfaces", &[], agent::interfaces),
    route(
        Post,
        "/nodes/{node}/qemu/{vmid}/agent/file-write",
        &[required("file", Kind::Text), required("content", Kind::Short(61_440)), optional("encode", Kind::Flag)],
        agent::file_write,
    ),
    route(Get, "/nodes/{node}/qemu/{vmid}/agent/file-read", &[required("file", Kind::Text)], agent::file_read),
    route(
        Post,
        "/nodes/{node}/qemu/{vmid}/agent/exec",
        &[required("command", Kind::List), optional("input-data", Kind::Short(65_536))],
        agent::execute,
    ),
    route(Get, "/nodes/{node}/qemu/{vmid}/agent/exec-status", &[required("pid", NUMBER)], agent::execution),
    route(Get, "/pools", &[optional("poolid", Kind::Text), optional("type", POOL_MEMBERS)], pool::list),
    route(Post, "/pools", &[required("poolid", Kind::Text), optional("comment", Kind::Text)], pool::create),
    route(Get, "/pools/{poolid}", &[optional("type", POOL_MEMBERS)], pool::read),
];
