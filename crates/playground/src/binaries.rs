//! The programs of the control plane: taken from `KUBEBUILDER_ASSETS`, from the cache, or built.

use crate::cache::{Cache, Key};
use crate::go::{Go, Line};
use crate::progress::Progress;
use crate::tools::{Tools, required_version};
use crate::trouble::{self, Trouble};
use std::path::PathBuf;
use std::time::{Instant, UNIX_EPOCH};

/// Part of the cache's key: a change here makes another binary.
const RECIPE: &str = "1";

/// One program and the Go package it is built from.
struct Program {
    name: &'static str,
    package: &'static str,
    /// What `go build` calls it.
    built_as: &'static str,
}

const PROGRAMS: [Program; 4] = [
    Program { name: "etcd", package: "go.etcd.io/etcd/server/v3", built_as: "server" },
    Program { name: "kube-apiserver", package: "k8s.io/kubernetes/cmd/kube-apiserver", built_as: "kube-apiserver" },
    Program {
        name: "kube-controller-manager",
        package: "k8s.io/kubernetes/cmd/kube-controller-manager",
        built_as: "kube-controller-manager",
    },
    Program { name: "kubectl", package: "k8s.io/kubernetes/cmd/kubectl", built_as: "kubectl" },
];

/// Where each program is.
#[derive(Debug, Clone)]
pub struct Binaries {
    /// etcd
    pub etcd: PathBuf,
    /// kube-apiserver
    pub apiserver: PathBuf,
    /// kube-controller-manager
    pub controller_manager: PathBuf,
    /// kubectl
    pub kubectl: PathBuf,
}

impl Binaries {
    /// Finds all programs and builds those that are nowhere.
    pub async fn ensure(tools: &Tools, cache: &Cache, progress: Progress) -> Result<Binaries, Trouble> {
        let ready_made = ready_made_folder()?;
        let key = Key::of([RECIPE, &tools.control_plane_mod, &tools.control_plane_sum]);
        let built = cache.entry("control-plane", &key);
        let locate = |name: &str| {
            let given = ready_made.iter().map(|folder| folder.join(name)).find(|path| path.is_file());
            given.or_else(|| Some(built.join(name)).filter(|path| path.is_file()))
        };
        let missing = || PROGRAMS.iter().filter(|program| locate(program.name).is_none()).collect::<Vec<_>>();
        if !missing().is_empty() {
            let mut step = progress.step("control plane");
            let _lock = cache.lock("control-plane", &key, || step.say("another run is building it, waiting")).await?;
            // Whoever held the lock before us may have built it.
            let wanted = missing();
            if !wanted.is_empty() {
                build(&wanted, tools, cache, &key, progress).await?;
            }
        }
        let find = |name: &str| {
            locate(name).ok_or_else(|| {
                Trouble::new(
                    format!("{name} was built and is gone from {}", built.display()),
                    "something cleans that folder while we use it; run again",
                )
            })
        };
        Ok(Binaries {
            etcd: find("etcd")?,
            apiserver: find("kube-apiserver")?,
            controller_manager: find("kube-controller-manager")?,
            kubectl: find("kubectl")?,
        })
    }

    /// Tells these programs from others: an etcd folder filled by one set is not given to another.
    pub fn fingerprint(&self) -> String {
        let one = |path: &PathBuf| {
            let about = std::fs::metadata(path).ok();
            let time = about.as_ref().and_then(|about| about.modified().ok()?.duration_since(UNIX_EPOCH).ok());
            format!("{} {:?} {time:?}", path.display(), about.map(|about| about.len()))
        };
        format!("{}\n{}", one(&self.etcd), one(&self.apiserver))
    }
}

fn ready_made_folder() -> Result<Option<PathBuf>, Trouble> {
    let Some(folder) = std::env::var_os("KUBEBUILDER_ASSETS").filter(|value| !value.is_empty()).map(PathBuf::from)
    else {
        return Ok(None);
    };
    if folder.is_dir() {
        // Programs are started in another folder, where a relative path would lead elsewhere.
        return std::path::absolute(&folder).map(Some).map_err(|error| trouble::io("use", &folder, error));
    }
    Err(Trouble::new(
        format!("KUBEBUILDER_ASSETS names {}, which is not a folder", folder.display()),
        "unset it, or set it to a folder with etcd, kube-apiserver, kube-controller-manager and kubectl",
    ))
}

async fn build(
    programs: &[&Program],
    tools: &Tools,
    cache: &Cache,
    key: &Key,
    progress: Progress,
) -> Result<(), Trouble> {
    let names = programs.iter().map(|program| program.name).collect::<Vec<_>>().join(", ");
    let bench = cache.workbench("control-plane")?;
    let write = |name: &str, text: &str| {
        let path = bench.path().join(name);
        std::fs::write(&path, text).map_err(|error| trouble::io("write", &path, error))
    };
    write("go.mod", &tools.control_plane_mod)?;
    write("go.sum", &tools.control_plane_sum)?;
    let go = Go::find(bench.path(), &format!("to build {names} (KUBEBUILDER_ASSETS does not have them)"))?;

    let mut step = progress.step("Go modules of the control plane");
    let mut fetched = 0;
    go.run(&["mod", "download", "-x"], |line| {
        if let Line::Err(text) = line
            && text.contains(".zip: 200")
        {
            fetched += 1;
            step.update(format_args!("{fetched} fetched"));
        }
    })
    .await?;
    step.done(format_args!("{fetched} fetched"));

    let packages: Vec<&str> = programs.iter().map(|program| program.package).collect();
    let mut total = 0;
    go.run(&[&["list", "-deps"], &packages[..]].concat(), |_| total += 1).await?;

    let mut step = progress.step("building the control plane");
    step.say(format_args!("{names}, once, some minutes"));
    let output = bench.path().join("out");
    std::fs::create_dir(&output).map_err(|error| trouble::io("create", &output, error))?;
    let target = format!("{}/", output.display());
    let flags = linker_flags(tools)?;
    let command = ["build", "-v", "-trimpath", "-ldflags", &flags, "-o", &target];
    let begun = Instant::now();
    let mut compiled = 0;
    go.run(&[&command, &packages[..]].concat(), |line| {
        if let Line::Err(package) = line {
            compiled += 1;
            step.update(format_args!(
                "{compiled} of at most {total} packages ({} s), {package}",
                begun.elapsed().as_secs()
            ));
        }
    })
    .await?;
    step.done(format_args!("{compiled} packages compiled"));

    for program in programs {
        let made = output.join(program.built_as);
        std::fs::rename(&made, bench.path().join(program.name))
            .map_err(|error| trouble::io("find the built", &made, error))?;
    }
    // A folder of an earlier, smaller build may be there: its programs are kept.
    let place = cache.entry("control-plane", key);
    if place.is_dir() {
        for program in programs {
            let path = place.join(program.name);
            std::fs::rename(bench.path().join(program.name), &path)
                .map_err(|error| trouble::io("install", &path, error))?;
        }
        return Ok(());
    }
    std::fs::remove_dir_all(&output).map_err(|error| trouble::io("remove", &output, error))?;
    cache.install(bench, "control-plane", key).map(|_| ())
}

/// Without its version the server calls itself v0.0.0, and clients choke on that.
fn linker_flags(tools: &Tools) -> Result<String, Trouble> {
    let version = required_version(&tools.control_plane_mod, "k8s.io/kubernetes").unwrap_or_default();
    let mut numbers = version.trim_start_matches('v').split('.');
    let (Some(major), Some(minor)) = (numbers.next().filter(|text| !text.is_empty()), numbers.next()) else {
        return Err(Trouble::new(
            "tools/control-plane/go.mod requires no version of k8s.io/kubernetes",
            "add a line such as `require k8s.io/kubernetes v1.36.3`",
        ));
    };
    let package = "k8s.io/component-base/version";
    Ok(format!("-s -w -X {package}.gitVersion={version} -X {package}.gitMajor={major} -X {package}.gitMinor={minor}"))
}
