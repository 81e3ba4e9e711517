//! Measures the operator's cost while nothing changes.

use super::drift;
use super::measure::{Measure, count};
use super::operator_process::OperatorProcess;
use super::pack::{Bench, OPERATOR, counts};
use playground::UserError;
use playground::audit::Kind;
use std::time::Duration;

/// The operator tells of what it did within this time: it publishes its status at most every 5 s.
const REPORTED: Duration = Duration::from_secs(7);

pub(crate) async fn measure(
    bench: &Bench<'_>,
    operator: &OperatorProcess,
    seconds: u64,
    measures: &mut Vec<Measure>,
) -> Result<(), UserError> {
    bench.wait_until_idle_for(REPORTED).await?;
    eprintln!("{}: idle for {seconds} s", bench.name);
    let (mark, cpu) = (bench.mark()?, operator.cpu()?);
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let idle = bench.own(mark)?;
    let hours = Duration::from_secs(seconds.max(1)).as_secs_f64() / 3600.0;
    let watches = idle.of(Kind::Watch);
    for request in counts(&idle) {
        eprintln!("{}: while idle: {request}", bench.name);
    }
    measures.push(Measure::count(
        bench.named(&format!("requests without watches and its lease in {seconds} s idle")),
        idle.count() - watches.count(),
    ));
    let leases = bench.all(mark)?.by(OPERATOR).of(Kind::Lease).count();
    measures.push(Measure::one(bench.named("requests for its lease while idle"), "per hour", count(leases) / hours));
    let per_hour = count(watches.count()) / count(bench.watches.max(1)) / hours;
    measures.push(Measure::one(bench.named("watch requests per watch and hour while idle"), "count", per_hour));
    measures.push(Measure::one(bench.named("CPU time while idle"), "ms per hour", (operator.cpu()? - cpu) / hours));
    // The operator still reacts.
    let Some(object) = bench.objects.iter().find(|object| object.is_alone) else { return Ok(()) };
    let (took, _) = drift::correction(bench, object).await?;
    measures.push(Measure::one(bench.named("a drift right after that, edit to correction"), "ms", took));
    Ok(())
}
