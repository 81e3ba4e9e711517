//! Measures the operator's start, from exec to the first and to the last write.

use super::measure::Measure;
use super::operator_process::OperatorProcess;
use super::pack::{Bench, between};
use jiff::Timestamp;
use playground::UserError;
use playground::audit::{Kind, Requests};

/// How often the operator is started again: the time varies with what the API server does besides.
const RESTARTS: usize = 7;

/// Starts the operator on a cluster without its objects, then again on one that has them all.
pub(crate) async fn measure(bench: &mut Bench<'_>, measures: &mut Vec<Measure>) -> Result<OperatorProcess, UserError> {
    bench.find_objects().await?;
    let expected = bench.objects.len();
    eprintln!("{}: start", bench.name);
    let (started, mark) = (Timestamp::now(), bench.mark()?);
    let first = bench.start_operator()?;
    bench.wait_for(mark, Kind::Write, expected).await?;
    bench.wait_until_idle().await?;
    let writes = bench.own(mark)?.of(Kind::Write);
    let last =
        |requests: &[playground::audit::Request]| requests.iter().map(|request| request.ended).max().unwrap_or(started);
    let first_write = writes.0.first().map_or(started, |request| request.at);
    measures.push(Measure::one(bench.named("exec to first write"), "ms", between(started, first_write)));
    measures.push(Measure::one(bench.named("exec to all written"), "ms", between(started, last(&writes.0))));
    drop(first);

    let mut first_writes = Vec::new();
    for _ in 1..RESTARTS {
        restart(bench, &mut first_writes).await?;
    }
    let (second, all) = restart(bench, &mut first_writes).await?;
    measures.push(Measure::of(bench.named("a restart: exec to first write"), "ms", first_writes));
    let lists = all.filter(|request| request.verb == "list").count();
    let kinds = all.filter(|request| request.verb == "list").table().len();
    measures.push(Measure::count(bench.named("a restart: lists"), lists));
    measures.push(Measure::count(bench.named("a restart: kinds listed"), kinds));
    measures.push(Measure::count(bench.named("a restart: applies"), all.of(Kind::Write).count()));
    measures.push(Measure::count(bench.named("a restart: watches"), all.of(Kind::Watch).count()));
    bench.watches = all.of(Kind::Watch).count();
    let others = all.count() - lists - all.of(Kind::Write).count() - all.of(Kind::Watch).count();
    measures.push(Measure::count(bench.named("a restart: other requests (discovery is two)"), others));
    Ok(second)
}

/// Starts the operator on a cluster that has all its objects, and waits until it has compared them all.
async fn restart(bench: &mut Bench<'_>, first_writes: &mut Vec<f64>) -> Result<(OperatorProcess, Requests), UserError> {
    let (started, mark) = (Timestamp::now(), bench.mark()?);
    let operator = bench.start_operator()?;
    bench.wait_for(mark, Kind::Write, bench.objects.len()).await?;
    bench.wait_until_idle().await?;
    let all = bench.own(mark)?;
    let first_write = all.of(Kind::Write).0.first().map_or(started, |request| request.at);
    first_writes.push(between(started, first_write));
    Ok((operator, all))
}
