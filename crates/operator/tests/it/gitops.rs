//! The files of docs/gitops.md, applied as a GitOps tool applies them.

use crate::commands::virtpilot;
use crate::operator::{Running, SERVICE, eventually};
use std::io::Write;
use std::process::{Command, Stdio};

/// The YAML files in a page.
fn files(page: &str) -> Vec<&str> {
    page.split("```yaml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect()
}

fn apply(running: &Running, file: &str) {
    let mut command = Command::new(&running.playground.binaries().kubectl);
    command.args(["apply", "--server-side", "--field-manager=gitops", "--filename=-", "--kubeconfig"]);
    let mut kubectl = command.arg(running.playground.kubeconfig()).stdin(Stdio::piped()).spawn().unwrap();
    kubectl.stdin.take().unwrap().write_all(file.as_bytes()).unwrap();
    assert!(kubectl.wait().unwrap().success(), "{file}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_files_of_the_guide_have_their_effect_and_own_nothing_else() {
    let running = Running::start(None).await;
    let service = eventually("the Service exists", async || running.services().get_opt(SERVICE).await.unwrap()).await;
    assert!(service.data["spec"]["sessionAffinity"] == "None");
    let page = include_str!("../../../../docs/gitops.md");
    let files = files(page);
    let [policy, overriding, approval] = files.as_slice() else { panic!("{files:?}") };
    apply(&running, policy);
    apply(&running, overriding);
    apply(&running, &format!("{policy}{}\n", approval.lines().last().unwrap()));

    let service = eventually("the patch is applied", async || {
        let service = running.services().get(SERVICE).await.unwrap();
        (service.data["spec"]["sessionAffinity"] == "ClientIP").then_some(service)
    })
    .await;
    let owner = |manager: &str| {
        let entries = service.metadata.managed_fields.iter().flatten();
        let mut fields =
            entries.filter(|entry| entry.manager.as_deref() == Some(manager)).map(|entry| &entry.fields_v1);
        fields.next().unwrap().as_ref().unwrap().0.to_string()
    };
    assert!(!owner("gitops").contains("f:spec"), "{}", owner("gitops"));
    assert!(owner(api::FIELD_MANAGER).contains("f:sessionAffinity"));

    let status = virtpilot(Some(&running.playground.kubeconfig()), &["status"]).stdout;
    for part in
        ["approval high-impact, window Sat,Sun 01:00-05:00 UTC\n", "override: Service openshift-cnv/virt-platform"]
    {
        assert!(status.contains(part), "{status}");
    }
    assert!(status.contains("PendingApproval"), "a digest of something else approves nothing: {status}");
}
