//! Asks the API server who sends our requests.

use crate::request::{Failure, Request, WHOLE, send};
use crate::server::Server;
use http::Method;
use serde_json::{Value, json};

/// The name of the user as the API server knows it; every user may ask.
pub async fn name(server: &Server) -> Result<String, Failure> {
    let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let request = Request {
        method: Method::POST,
        url: "/apis/authentication.k8s.io/v1/selfsubjectreviews".to_owned(),
        accept: WHOLE,
        content_type: "application/json",
        body: review.to_string().into_bytes(),
    };
    let answer: Value = serde_json::from_str(&send(server, request).await?)?;
    let name = answer["status"]["userInfo"]["username"].as_str().filter(|name| !name.is_empty());
    name.map(str::to_owned).ok_or_else(|| Failure::Unanswered("the answer names no user".to_owned()))
}
