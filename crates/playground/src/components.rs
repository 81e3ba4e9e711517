//! How etcd, the API server and the controller manager are started.

use crate::binaries::Binaries;
use crate::certificates::Certificates;
use crate::process::{Output, Start};
use std::path::{Path, PathBuf};

/// The names of the programs in reports and logs.
pub const ETCD: &str = "etcd";
/// See [`ETCD`].
pub const API_SERVER: &str = "kube-apiserver";
/// See [`ETCD`].
pub const CONTROLLER_MANAGER: &str = "kube-controller-manager";

/// The files of one control plane, all in a folder that only its owner can enter.
#[derive(Debug, Clone)]
pub struct Layout {
    /// The folder.
    pub folder: PathBuf,
}

impl Layout {
    /// etcd's data.
    pub fn data(&self) -> PathBuf {
        self.folder.join("etcd")
    }

    /// Where etcd listens. A socket in a private folder needs no port, no certificate, and cannot clash.
    pub fn socket(&self) -> PathBuf {
        self.folder.join("etcd.sock")
    }

    /// The API server's record of every request.
    pub fn audit_log(&self) -> PathBuf {
        self.folder.join("audit.log")
    }

    /// What decides what is recorded.
    pub fn audit_policy(&self) -> PathBuf {
        self.folder.join("audit-policy.yaml")
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.folder.join("kubeconfig")
    }

    /// The controller manager's kubeconfig.
    pub fn controller_manager_kubeconfig(&self) -> PathBuf {
        self.folder.join("controller-manager.kubeconfig")
    }

    /// What a program printed.
    pub fn log(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.log"))
    }

    /// How a program is started here: in this folder, with a log in it.
    pub fn start(&self, name: &str, program: &Path, args: Vec<String>) -> Start {
        Start {
            name: name.to_owned(),
            program: program.to_owned(),
            args,
            env: Vec::new(),
            folder: self.folder.clone(),
            output: Output::File(self.log(name)),
        }
    }
}

/// etcd with one member. Without `fsync` a crash of the machine may lose data, which is what tests want.
pub fn etcd(binaries: &Binaries, layout: &Layout, fsync: bool) -> Start {
    let socket = format!("unix://{}", layout.socket().display());
    // Nobody ever connects to the only member's peer address; etcd wants one all the same and listens on an
    // unnamed socket.
    let peer = "http://127.0.0.1:2380";
    let mut args = vec![
        format!("--data-dir={}", layout.data().display()),
        "--name=playground".into(),
        format!("--listen-client-urls={socket}"),
        format!("--advertise-client-urls={socket}"),
        format!("--listen-peer-urls=unix://{}", layout.folder.join("peer.sock").display()),
        format!("--initial-advertise-peer-urls={peer}"),
        format!("--initial-cluster=playground={peer}"),
        "--log-level=warn".into(),
    ];
    if !fsync {
        args.push("--unsafe-no-fsync".into());
    }
    layout.start(ETCD, &binaries.etcd, args)
}

/// The API server with RBAC, its own certificates and a complete audit log.
pub fn api_server(binaries: &Binaries, layout: &Layout, certificates: &Certificates, port: u16) -> Start {
    let file = |flag: &str, path: &Path| format!("--{flag}={}", path.display());
    let args = vec![
        format!("--etcd-servers=unix://{}", layout.socket().display()),
        "--bind-address=127.0.0.1".into(),
        "--advertise-address=127.0.0.1".into(),
        format!("--secure-port={port}"),
        "--endpoint-reconciler-type=none".into(),
        file("tls-cert-file", &certificates.server.public),
        file("tls-private-key-file", &certificates.server.private),
        file("client-ca-file", &certificates.authority),
        "--service-account-issuer=https://kubernetes.default.svc".into(),
        file("service-account-signing-key-file", &certificates.tokens.private),
        file("service-account-key-file", &certificates.tokens.public),
        "--service-cluster-ip-range=10.0.0.0/24".into(),
        "--authorization-mode=RBAC".into(),
        "--anonymous-auth=false".into(),
        "--allow-privileged=true".into(),
        "--profiling=false".into(),
        file("audit-policy-file", &layout.audit_policy()),
        file("audit-log-path", &layout.audit_log()),
        // A request is on record before its answer ends, so a count is exact; and the log is never rotated away.
        "--audit-log-mode=blocking".into(),
        "--audit-log-maxsize=1000000".into(),
    ];
    layout.start(API_SERVER, &binaries.apiserver, args)
}

/// The controllers that a cluster without nodes still needs: garbage collection, namespaces, service accounts and tokens.
pub fn controller_manager(binaries: &Binaries, layout: &Layout, certificates: &Certificates) -> Start {
    let kubeconfig = layout.controller_manager_kubeconfig().display().to_string();
    let controllers = [
        "garbage-collector-controller",
        "namespace-controller",
        "serviceaccount-controller",
        "serviceaccount-token-controller",
        "root-ca-certificate-publisher-controller",
        "clusterrole-aggregation-controller",
    ];
    let args = vec![
        format!("--kubeconfig={kubeconfig}"),
        format!("--controllers={}", controllers.join(",")),
        format!("--service-account-private-key-file={}", certificates.tokens.private.display()),
        format!("--root-ca-file={}", certificates.authority.display()),
        // Each controller acts under its own name and with its own rights, as on a real cluster.
        "--use-service-account-credentials=true".into(),
        "--leader-elect=false".into(),
        "--secure-port=0".into(),
        "--kube-api-qps=200".into(),
        "--kube-api-burst=400".into(),
    ];
    layout.start(CONTROLLER_MANAGER, &binaries.controller_manager, args)
}

/// The audit policy's text.
pub const AUDIT_POLICY: &str = include_str!("audit_policy.yaml");
