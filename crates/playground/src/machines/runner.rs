//! The program in place of the runner. That of GitHub: logs in with its just-in-time configuration, waits for a job, takes its time for it, and says
//! so to GitHub and to its guest, in the words of the real one.

use super::machine::RUNNER_ID;
use super::server::Server;
use crate::user_error::{self, UserError};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use rustix::process::getppid;
use serde_json::{Value, json};
use std::path::Path;
use std::time::Duration;

/// How often it asks for its job.
pub(super) const PAUSE: Duration = Duration::from_millis(50);
/// What the stand-in offers to runners; the real protocol is not public.
const RUNNERS: &str = "/api/v3/_stand-in/runners";

/// Runs one job in the folder where `run.sh` is, and returns whether there was one.
pub async fn run(folder: &Path, job: Duration) -> Result<bool, UserError> {
    let guest = getppid();
    let read = |name: &str| {
        let path = folder.join(name);
        std::fs::read_to_string(&path).map_err(|error| user_error::io("read", &path, error))
    };
    let files = [".runner", ".credentials", ".credentials_rsaparams"];
    let own: Value = serde_json::from_str(&read(".runner")?).unwrap_or_default();
    if own["platform"] == "gitlab" {
        return super::gitlab_runner::run(&read(".credentials")?, &read("ca.pem")?, job).await;
    }
    let mut settings = serde_json::Map::new();
    for name in files {
        settings.insert(name.to_owned(), STANDARD.encode(read(name)?).into());
    }
    // Before it logs in: from then on it may get a job, and GitHub has to find out if its machine ends.
    let id = folder.parent().and_then(Path::parent).unwrap_or(folder).join(RUNNER_ID);
    let number = own["AgentId"].as_str().unwrap_or_default();
    std::fs::write(&id, number).map_err(|error| user_error::io("write", &id, error))?;
    let mut github = Server::connect(own["GitHubUrl"].as_str().unwrap_or_default(), &read("ca.pem")?).await?;
    let jit = STANDARD.encode(Value::Object(settings).to_string());
    let (status, started) = github.ask(Method::POST, RUNNERS, json!({"jit": jit})).await?;
    if status != 201 {
        println!(
            "Failed to create a session: {}",
            started["message"].as_str().unwrap_or("the runner is not registered")
        );
        return Ok(false);
    }
    let path = format!("{RUNNERS}/{}", started["id"]);
    println!("\n√ Connected to GitHub\n\nListening for Jobs");
    // A machine that loses its power takes the runner with it.
    while getppid() == guest {
        let (status, state) = github.ask(Method::GET, &path, Value::Null).await?;
        if status == 404 {
            println!("The runner registration has been deleted from the server");
            return Ok(false);
        }
        if let Some(name) = state["job"]["name"].as_str() {
            println!("Running job: {name}");
            tokio::time::sleep(job).await;
            if getppid() == guest {
                github.ask(Method::POST, &format!("{path}/finished"), json!({"conclusion": "success"})).await?;
                println!("Job {name} completed with result: Succeeded");
            }
            return Ok(true);
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(false)
}
