//! Both servers over real connections.

mod guests;
mod rig;
mod webhooks;
