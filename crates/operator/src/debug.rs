//! The debug server: what the running core knows, with the predecessor's paths. Values that may be secret are redacted.

use crate::command::features;
use crate::command::render;
use crate::metrics::Metrics;
use autopilot::{AssetResult, Core, Outcome};
use axum::Router;
use axum::http::{Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use catalog::Catalog;
use change::redact::{Place, REDACTED, message};
use runtime::Question;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// A core that does not answer by then is busy.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Questions to the core.
pub(crate) type Questions = mpsc::Receiver<Question<Core>>;

/// What the server answers from.
struct Sources {
    core: mpsc::Sender<Question<Core>>,
    metrics: Arc<Metrics>,
    features: Value,
    tombstones: Value,
}

/// A refusal: the status and why.
type Refusal = (StatusCode, String);

#[derive(Clone, Copy)]
enum Format {
    Yaml,
    Json,
}

/// The routes, and the questions that the core is to answer.
pub(crate) fn routes(catalog: &Catalog, metrics: Arc<Metrics>) -> (Router, Questions) {
    let (core, questions) = mpsc::channel(1);
    let tombstones = catalog.tombstones.iter().map(|tombstone| {
        let namespace = tombstone.namespace.as_deref().unwrap_or_default();
        json!({"kind": tombstone.kind, "name": tombstone.name, "namespace": namespace, "path": tombstone.file})
    });
    let tombstones = tombstones.collect();
    let sources = Arc::new(Sources { core, metrics, features: features::document(catalog), tombstones });
    let answer = move |method: Method, uri: Uri| async move {
        match method {
            Method::GET => answer(&sources, &uri).await.unwrap_or_else(IntoResponse::into_response),
            _ => (StatusCode::METHOD_NOT_ALLOWED, [(header::ALLOW, "GET")], "only GET is answered\n").into_response(),
        }
    };
    (Router::new().fallback(answer), questions)
}

async fn answer(sources: &Sources, uri: &Uri) -> Result<Response, Refusal> {
    let parameter = |name: &str| {
        let pairs = uri.query().unwrap_or_default().split('&').filter_map(|pair| pair.split_once('='));
        pairs.filter(|(key, _)| *key == name).map(|(_, value)| value).next()
    };
    let format = match parameter("format") {
        None | Some("yaml") => Format::Yaml,
        Some("json") => Format::Json,
        Some(_) => return Err((StatusCode::BAD_REQUEST, "format is yaml or json\n".to_owned())),
    };
    let all = parameter("show-excluded") == Some("true");
    match uri.path() {
        "/debug/health" => Ok("OK".into_response()),
        "/debug/features" => Ok(document(format, &sources.features)),
        "/debug/tombstones" => Ok(document(format, &sources.tombstones)),
        "/debug/status" => {
            let report = ask(sources, |core| serde_json::to_value(core.report()).unwrap_or_default()).await?;
            Ok(document(format, &report))
        }
        "/debug/exclusions" => {
            let all = ask(sources, |core| core.outcomes().iter().filter_map(exclusion).collect()).await?;
            Ok(document(format, &Value::Array(all)))
        }
        "/debug/render" => {
            let rendered: Vec<Value> =
                ask(sources, move |core| render::shown(core.outcomes(), all).map(redacted).collect()).await?;
            Ok(outcomes(format, &rendered))
        }
        path => match path.strip_prefix("/debug/render/") {
            None => Err((StatusCode::NOT_FOUND, "there is no such page\n".to_owned())),
            Some("") => Err((StatusCode::BAD_REQUEST, "name an asset\n".to_owned())),
            Some(name) => {
                let asset = name.to_owned();
                let of_asset = move |core: &Core| {
                    let outcomes = core.outcomes().iter().filter(|outcome| outcome.asset == asset);
                    outcomes.map(redacted).collect::<Vec<_>>()
                };
                let rendered = ask(sources, of_asset).await?;
                match rendered.is_empty() {
                    true => Err((StatusCode::NOT_FOUND, format!("there is no asset {name}\n"))),
                    false => Ok(outcomes(format, &rendered)),
                }
            }
        },
    }
}

/// Asks the core, between two of its decisions.
async fn ask<T: Send + 'static>(
    sources: &Sources,
    question: impl FnOnce(&Core) -> T + Send + 'static,
) -> Result<T, Refusal> {
    let unavailable = |why: &str| (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n"));
    if !sources.metrics.is_leader() {
        return Err(unavailable("this replica is a standby and knows nothing of the cluster; ask the one that leads"));
    }
    let (reply, answer) = oneshot::channel();
    let question: Question<Core> = Box::new(move |core| {
        // Whoever asked may have gone.
        let _ = reply.send(core.has_evaluated().then(|| question(core)));
    });
    let answered = async {
        sources.core.send(question).await.ok()?;
        answer.await.ok()
    };
    match tokio::time::timeout(TIMEOUT, answered).await {
        Ok(Some(Some(answer))) => Ok(answer),
        Ok(Some(None)) => Err(unavailable("nothing was rendered yet; /readyz says what is waited for")),
        Ok(None) => Err(unavailable("the operator is stopping")),
        Err(_) => Err(unavailable("the operator is busy")),
    }
}

/// An outcome without values that may be secret.
fn redacted(outcome: &Outcome) -> Value {
    let mut value = render::as_json(outcome);
    if let (Some(object), Some(key)) = (value.get_mut("object"), &outcome.key) {
        *object = Place::top(&key.kind).shown(object).unwrap_or_else(|| REDACTED.into());
    }
    if let (Some(reason), Some(kind)) = (value["reason"].as_str(), &outcome.kind) {
        value["reason"] = message::redact(kind, reason).into();
    }
    value
}

/// Why an asset has no object.
fn exclusion(outcome: &Outcome) -> Option<Value> {
    if matches!(outcome.result, AssetResult::Included(_)) {
        return None;
    }
    let mut value = redacted(outcome);
    let resource = outcome.key.as_ref().map(ToString::to_string);
    let mut details = json!({"status": value["status"]});
    if let Some(resource) = resource {
        details["resource"] = resource.into();
    }
    if matches!(outcome.result, AssetResult::Filtered(_)) {
        details["annotation"] = api::annotation::DISABLED_RESOURCES.into();
    }
    value["details"] = details;
    value.as_object_mut()?.remove("status");
    Some(value)
}

fn outcomes(format: Format, rendered: &[Value]) -> Response {
    match format {
        Format::Json => document(format, &Value::Array(rendered.to_vec())),
        Format::Yaml => typed("application/x-yaml", rendered.iter().map(render::as_yaml).collect()),
    }
}

fn document(format: Format, value: &Value) -> Response {
    match format {
        Format::Json => typed("application/json", format!("{value:#}\n")),
        Format::Yaml => typed("application/x-yaml", catalog::yaml_text(value)),
    }
}

fn typed(content_type: &'static str, text: String) -> Response {
    ([(header::CONTENT_TYPE, content_type)], text).into_response()
}
