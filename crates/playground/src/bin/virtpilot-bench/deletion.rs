//! Deletes all objects at once and measures until all are recreated, compared with the baseline client.

use super::baseline::{self, UnmanagedCopy};
use super::measure::{Measure, count};
use super::pack::{Bench, Object, between};
use futures::{StreamExt, TryStreamExt, stream};
use kube::api::DeleteParams;
use playground::UserError;
use playground::audit::{Kind, Requests};
use playground::certificates::ADMIN_USER;
use playground::user_error::refused;

/// As many as the operator writes concurrently.
const CONCURRENCY: usize = 8;

pub(crate) async fn measure(bench: &Bench<'_>, measures: &mut Vec<Measure>) -> Result<(), UserError> {
    eprintln!("{}: deletion of all objects", bench.name);
    let copies = baseline::copies(bench).await?;
    bench.wait_until_idle().await?;
    let mark = bench.mark()?;
    let recreate = async |copy: &UnmanagedCopy| {
        delete(&copy.object).await?;
        copy.apply().await
    };
    stream::iter(copies.iter().map(|(_, copy)| copy))
        .map(recreate)
        .buffer_unordered(CONCURRENCY)
        .try_collect::<Vec<()>>()
        .await?;
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    let baseline = span(&bench.all(mark)?, |requests| requests.by(ADMIN_USER));

    bench.wait_until_idle().await?;
    let mark = bench.mark()?;
    let objects: Vec<&Object> = bench.objects.iter().filter(|object| object.is_alone).collect();
    stream::iter(objects.iter().copied()).map(delete).buffer_unordered(CONCURRENCY).try_collect::<Vec<()>>().await?;
    bench.wait_for(mark, Kind::Write, objects.len()).await?;
    bench.wait_until_idle().await?;
    let own = bench.own(mark)?;
    let operator = span(&bench.all(mark)?, |requests| requests.of(Kind::Write));
    measures.push(Measure::one(bench.named("from all deleted to all recreated"), "ms", operator));
    measures.push(Measure::one(bench.named("the same by the baseline client"), "ms", baseline));
    measures.push(Measure::one(
        bench.named("from all deleted to all recreated"),
        "times the baseline, per object",
        operator / baseline * count(copies.len()) / count(objects.len()),
    ));
    measures.push(Measure::count(bench.named("applies for that"), own.of(Kind::Write).count()));
    measures.push(Measure::count(bench.named("lists for that"), own.of(Kind::Read).count()));
    for (_, copy) in &copies {
        delete(&copy.object).await?;
    }
    Ok(())
}

async fn delete(object: &Object) -> Result<(), UserError> {
    // Background deletion returns a Status instead of the object, which saves reading it.
    let params = DeleteParams::background().grace_period(0);
    object.api.delete(&object.name, &params).await.map(|_| ()).map_err(|error| refused(&error))
}

/// The milliseconds from the first selected write to the end of the last.
fn span(all: &Requests, select: impl Fn(&Requests) -> Requests) -> f64 {
    let writes = select(&all.of(Kind::Write));
    let first = writes.0.iter().map(|request| request.at).min().unwrap_or_default();
    let last = writes.0.iter().map(|request| request.ended).max().unwrap_or_default();
    between(first, last)
}
