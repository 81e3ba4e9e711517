//! The hands all products share.
