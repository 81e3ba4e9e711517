//! Functions that end the render with a message for the user.

use super::argument::text;
use crate::template::run::{RenderContext, Stop};
use crate::template::value::Value;

/// `fail`: the asset cannot be rendered, for this reason.
pub fn fail(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    Err(Stop::Failed(text(&arguments[0])?.to_owned()))
}

/// `notApplicable`: there is no object on this cluster, for this reason.
pub fn not_applicable(_: &RenderContext<'_>, arguments: &[Value]) -> Result<Value, Stop> {
    Err(Stop::NotApplicable(text(&arguments[0])?.to_owned()))
}
