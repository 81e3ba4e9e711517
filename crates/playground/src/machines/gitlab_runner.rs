//! The program in place of `gitlab-runner run-single --max-builds 1`: reads its configuration, asks for a job, takes its time for it, and says
//! so to GitLab and to its guest, in the words of the real one.

use super::runner::PAUSE;
use super::server::Server;
use crate::user_error::UserError;
use http::Method;
use rustix::process::getppid;
use serde_json::json;
use std::time::Duration;

/// Runs one job with this configuration, and returns whether there was one.
pub(super) async fn run(config: &str, ca: &str, job: Duration) -> Result<bool, UserError> {
    let guest = getppid();
    let (url, token) = (value(config, "url"), value(config, "token"));
    let mut gitlab = Server::connect(&url, ca).await?;
    // A machine that loses its power takes the runner with it.
    while getppid() == guest {
        let (status, given) = gitlab.ask(Method::POST, "/api/v4/jobs/request", json!({"token": token})).await?;
        match status {
            201 => {
                let id = &given["id"];
                println!("Checking for jobs... received                       job={id} runner=t1_stand-in");
                tokio::time::sleep(job).await;
                if getppid() == guest {
                    let done = json!({"token": given["token"], "state": "success"});
                    gitlab.ask(Method::PUT, &format!("/api/v4/jobs/{id}"), done).await?;
                    println!(
                        "Job succeeded                                       duration_s=1 job={id} runner=t1_stand-in"
                    );
                }
                return Ok(true);
            }
            204 => tokio::time::sleep(PAUSE).await,
            _ => {
                println!("ERROR: Checking for jobs... forbidden               runner=t1_stand-in status={status}");
                return Ok(false);
            }
        }
    }
    Ok(false)
}

/// A text of the only runner in a configuration. Texts of TOML are written as those of JSON.
fn value(config: &str, name: &str) -> String {
    let mut values = config.lines().filter_map(|line| line.split_once(" = "));
    let found = values.find(|(key, _)| *key == name);
    found.and_then(|(_, value)| serde_json::from_str(value).ok()).unwrap_or_default()
}
