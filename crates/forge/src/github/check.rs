//! Logs in, and finds out what the credentials allow.

use crate::github::client::{Client, Sent};
use crate::github::trouble::{Need, Trouble, app_permission, permission};
use fleet::forge::budget::Priority;
use fleet::forge::{Answer, Checked, Failure};
use serde::Deserialize;

#[derive(Deserialize)]
struct Meta {
    #[serde(default)]
    installed_version: Option<String>,
}

/// What every pool needs. That jobs and deliveries can be read is needed by those that read them.
const NEEDS: [Need; 2] = [Need::Runners, Need::Actions];

pub(crate) async fn check(client: &Client) -> Result<Answer, Failure> {
    let fail = |trouble: &Trouble| client.failure(trouble, "logging in", Need::Runners);
    let granted = client.granted().await.map_err(|trouble| fail(&trouble))?;
    let mut missing = Vec::new();
    let context = client.context();
    if let Some(granted) = &granted {
        for need in NEEDS {
            let (name, is_write) = app_permission(need, &client.address.scope);
            let level = granted.permissions.get(name).map(String::as_str);
            if !matches!((level, is_write), (Some("write" | "admin"), _) | (Some("read"), false)) {
                missing.push(permission(need, &context).to_owned());
            }
        }
    }
    let sent = Sent::get("/{scope}/actions/runners", &[]).query("per_page", "1").priority(Priority::Normal);
    match client.send(&sent).await {
        Ok(_) => {}
        Err(trouble) if trouble.is(403) => {
            let name = permission(Need::Runners, &context).to_owned();
            if !missing.contains(&name) {
                missing.push(name);
            }
        }
        Err(trouble) => return Err(fail(&trouble)),
    }
    let meta = client.send(&Sent::get("/meta", &[])).await.and_then(|content| content.read::<Meta>());
    let login = match granted {
        Some(granted) => format!("installation {} of {}", granted.installation, client.login.describe()),
        None => client.login.describe(),
    };
    let version = meta.map_err(|trouble| fail(&trouble))?.installed_version;
    let (clock_ahead, budget, reset) = (client.clock_ahead(), client.budget(), client.reset());
    let authorities = client.authorities.clone();
    Ok(Answer::Checked(Box::new(Checked { version, login, missing, clock_ahead, budget, reset, authorities })))
}
