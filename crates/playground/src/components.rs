//! The command lines of etcd, the API server and the controller manager.

use crate::binaries::Binaries;
use crate::certificates::Certificates;
use crate::process::{Output, Start};
use std::path::{Path, PathBuf};

/// The name of etcd in reports and logs.
pub const ETCD: &str = "etcd";
/// The name of the API server in reports and logs.
pub const API_SERVER: &str = "kube-apiserver";
/// The name of the controller manager in reports and logs.
pub const CONTROLLER_MANAGER: &str = "kube-controller-manager";

/// The files of one control plane, in a folder with mode 0700.
#[derive(Debug, Clone)]
pub struct Layout {
    /// The folder.
    pub folder: PathBuf,
}

impl Layout {
    /// etcd's data folder.
    pub fn data(&self) -> PathBuf {
        self.folder.join("etcd")
    }

    /// etcd's socket. In a private folder it needs no port and no certificate, and cannot conflict.
    pub fn socket(&self) -> PathBuf {
        self.folder.join("etcd.sock")
    }

    /// The API server's audit log.
    pub fn audit_log(&self) -> PathBuf {
        self.folder.join("audit.log")
    }

    /// The API server's audit policy.
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

    /// The output of a program.
    pub fn log(&self, name: &str) -> PathBuf {
        self.folder.join(format!("{name}.log"))
    }

    /// A program that runs in this folder and logs to it.
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

/// etcd with one member. Without `fsync` it is faster, and a crash of the machine may lose data.
pub fn etcd(binaries: &Binaries, layout: &Layout, fsync: bool) -> Start {
    let socket = format!("unix://{}", layout.socket().display());
    // etcd requires a peer address although the only member has no peers; it listens on a socket instead.
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
        // As kubeadm and OpenShift do: without it the API server has no bookmarks for kinds without changes.
        "--watch-progress-notify-interval=5s".into(),
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
        // Blocking mode logs a request before its response ends, so counts are exact; the size prevents rotation.
        "--audit-log-mode=blocking".into(),
        "--audit-log-maxsize=1000000".into(),
    ];
    layout.start(API_SERVER, &binaries.apiserver, args)
}

/// The controller manager with the controllers that a cluster without kubelets needs.
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
        // Every controller uses its own service account and role, as on a real cluster.
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
