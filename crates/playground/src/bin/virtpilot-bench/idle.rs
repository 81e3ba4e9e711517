//! What it costs when nothing happens.

use super::bare;
use super::measure::{Measure, count};
use super::pack::{Bench, between, edit};
use super::subject::Subject;
use playground::Trouble;
use playground::audit::Kind;
use std::time::Duration;

pub(crate) async fn measure(
    bench: &Bench<'_>,
    subject: &Subject,
    seconds: u64,
    measures: &mut Vec<Measure>,
) -> Result<(), Trouble> {
    bench.quiet().await?;
    eprintln!("{}: idle for {seconds} s", bench.name);
    let (mark, cpu) = (bench.mark()?, subject.cpu()?);
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let idle = bench.own(mark)?;
    let hours = Duration::from_secs(seconds.max(1)).as_secs_f64() / 3600.0;
    let watches = idle.of(Kind::Watch);
    measures.push(Measure::count(
        bench.named(&format!("requests in {seconds} s idle, watches apart")),
        idle.count() - watches.count(),
    ));
    let an_hour = count(watches.count()) / count(bench.watches.max(1)) / hours;
    measures.push(Measure::one(bench.named("watch requests per watch and hour while idle"), "count", an_hour));
    measures.push(Measure::one(bench.named("processor while idle"), "ms an hour", (subject.cpu()? - cpu) / hours));
    // It is awake.
    let Some(object) = bench.objects.first() else { return Ok(()) };
    let mark = bench.mark()?;
    edit(&object.api, &object.name, &bare::change()).await?;
    bench.until(mark, Kind::Event, 1).await?;
    let all = bench.all(mark)?;
    let ended = |by: &str| all.by(by).of(Kind::Write).0.first().map(|request| request.ended).unwrap_or_default();
    let took = between(ended("playground-admin"), ended("openshift-cnv/virt-platform-autopilot"));
    measures.push(Measure::one(bench.named("a drift right after that, edit to correction"), "ms", took));
    Ok(())
}
