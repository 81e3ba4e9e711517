//! Carries out one write: its record, its backup, and the write itself.

use cluster::act::act;
use cluster::{Permit, Server, backup};
use protocol::{Backup, Write, WriteError, Written};

/// Makes one write under the field manager of the server's identity.
pub async fn write(server: &Server, permit: &Permit, write: Write) -> Result<Written, WriteError> {
    let Write { key, served, effect, attempt, record, backup } = write;
    let field_manager = server.identity.field_manager;
    if let Some((key, served, effect)) = record
        && let Err(error) = act(server, permit, field_manager, &served, &key, effect, 0).await
    {
        tracing::warn!("could not write the record {key}: {error}");
    }
    let before = match backup {
        Some(Backup { secrets, namespace }) => {
            Some(backup::take(server, permit, &secrets, &namespace, &served, &key).await?)
        }
        None => None,
    };
    let written = act(server, permit, field_manager, &served, &key, effect, attempt).await?;
    Ok(Written { before, ..written })
}
