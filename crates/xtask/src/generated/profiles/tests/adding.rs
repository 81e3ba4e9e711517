//! A profile is added as the document says.
