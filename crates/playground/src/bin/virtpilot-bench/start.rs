//! From exec to the first write and to the last.

use super::measure::Measure;
use super::pack::{Bench, between};
use super::subject::Subject;
use jiff::Timestamp;
use playground::Trouble;
use playground::audit::Kind;

/// Starts on a cluster without any of the objects, then once more on one that has them all.
pub(crate) async fn measure(bench: &mut Bench<'_>, measures: &mut Vec<Measure>) -> Result<Subject, Trouble> {
    let wanted = bench.pack.map_or(2, |_| 80);
    eprintln!("{}: start", bench.name);
    let (begun, mark) = (Timestamp::now(), bench.mark()?);
    let first = bench.subject()?;
    bench.until(mark, Kind::Write, wanted).await?;
    bench.quiet().await?;
    let made = bench.own(mark)?.of(Kind::Write);
    bench.find_objects().await?;
    let last =
        |requests: &[playground::audit::Request]| requests.iter().map(|request| request.ended).max().unwrap_or(begun);
    let first_write = made.0.first().map_or(begun, |request| request.at);
    measures.push(Measure::one(bench.named("exec to first write"), "ms", between(begun, first_write)));
    measures.push(Measure::one(bench.named("exec to all written"), "ms", between(begun, last(&made.0))));
    drop(first);

    let (begun, mark) = (Timestamp::now(), bench.mark()?);
    let second = bench.subject()?;
    bench.until(mark, Kind::Write, wanted).await?;
    bench.quiet().await?;
    let all = bench.own(mark)?;
    let first_write = all.of(Kind::Write).0.first().map_or(begun, |request| request.at);
    measures.push(Measure::one(bench.named("a restart: exec to first write"), "ms", between(begun, first_write)));
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
