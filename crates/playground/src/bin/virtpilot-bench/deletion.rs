//! Everything deleted at once, until everything is back; beside a client that puts each back as soon as it is gone.

use super::bare::{self, Twin};
use super::measure::{Measure, count};
use super::pack::{Bench, Object, between, refused};
use futures::{StreamExt, TryStreamExt, stream};
use kube::api::DeleteParams;
use playground::Trouble;
use playground::audit::{Kind, Requests};

/// As many as the operator writes at a time.
const AT_A_TIME: usize = 8;

pub(crate) async fn measure(bench: &Bench<'_>, measures: &mut Vec<Measure>) -> Result<(), Trouble> {
    eprintln!("{}: everything deleted", bench.name);
    let twins = bare::twins(bench).await?;
    bench.quiet().await?;
    let mark = bench.mark()?;
    let back = async |twin: &Twin| {
        delete(&twin.object).await?;
        twin.apply().await
    };
    stream::iter(twins.iter().map(|(_, twin)| twin))
        .map(back)
        .buffer_unordered(AT_A_TIME)
        .try_collect::<Vec<()>>()
        .await?;
    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    let limit = span(&bench.all(mark)?, |requests| requests.by("playground-admin"));

    bench.quiet().await?;
    let mark = bench.mark()?;
    stream::iter(&bench.objects).map(delete).buffer_unordered(AT_A_TIME).try_collect::<Vec<()>>().await?;
    bench.until(mark, Kind::Write, bench.objects.len()).await?;
    bench.quiet().await?;
    let own = bench.own(mark)?;
    let ours = span(&bench.all(mark)?, |requests| requests.of(Kind::Write));
    measures.push(Measure::one(bench.named("all deleted to all back"), "ms", ours));
    measures.push(Measure::one(bench.named("the same by a bare client"), "ms", limit));
    measures.push(Measure::one(
        bench.named("all deleted to all back"),
        "times the limit, per object",
        ours / limit * count(twins.len()) / count(bench.objects.len()),
    ));
    measures.push(Measure::count(bench.named("applies for that"), own.of(Kind::Write).count()));
    measures.push(Measure::count(bench.named("lists for that"), own.of(Kind::Read).count()));
    for (_, twin) in &twins {
        delete(&twin.object).await?;
    }
    Ok(())
}

async fn delete(object: &Object) -> Result<(), Trouble> {
    // An answer without the object: it would only have to be read.
    let params = DeleteParams::background().grace_period(0);
    object.api.delete(&object.name, &params).await.map(|_| ()).map_err(|error| refused(&error))
}

/// From the first request to the end of the last.
fn span(all: &Requests, of: impl Fn(&Requests) -> Requests) -> f64 {
    let writes = of(&all.of(Kind::Write));
    let first = writes.0.iter().map(|request| request.at).min().unwrap_or_default();
    let last = writes.0.iter().map(|request| request.ended).max().unwrap_or_default();
    between(first, last)
}
