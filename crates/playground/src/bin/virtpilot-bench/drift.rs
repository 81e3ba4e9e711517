//! Measures the time from a manual edit to its correction, compared with the baseline client.

use super::baseline::{self, UnmanagedCopy};
use super::measure::{Measure, count};
use super::pack::{Bench, Object, between, poll_until};
use jiff::Timestamp;
use playground::UserError;
use playground::audit::{Kind, Request, Requests};
use playground::certificates::ADMIN_USER;
use playground::deployment::edit;
use std::time::Duration;

pub(crate) async fn measure(bench: &Bench<'_>, rounds: usize, measures: &mut Vec<Measure>) -> Result<(), UserError> {
    let copies = baseline::copies(bench).await?;
    bench.wait_until_idle().await?;
    let (mut operator, mut baseline, mut requests) = ([vec![], vec![]], [vec![], vec![]], Vec::new());
    for round in 0..rounds {
        eprint!("\r{}: drift {} of {rounds}   ", bench.name, round + 1);
        let (object, copy) = &copies[round % copies.len()];
        let group = usize::from(!copy.object.is_core);
        baseline[group].push(baseline_correction(bench, copy).await?);
        let (took, own) = correction(bench, object).await?;
        operator[group].push(took);
        requests.push(count(own.count() - own.of(Kind::Watch).count()));
    }
    eprintln!();
    for (group, name) in ["core kinds", "CRDs"].into_iter().enumerate() {
        let [operator, baseline] = [&mut operator[group], &mut baseline[group]].map(std::mem::take);
        let operator = Measure::of(bench.named(&format!("drift of {name}, edit to correction")), "ms", operator);
        let baseline = Measure::of(bench.named(&format!("the same by the baseline client, {name}")), "ms", baseline);
        let ratio = operator.ratio_to(&baseline, &bench.named(&format!("drift of {name}")));
        measures.extend([operator, baseline, ratio]);
    }
    measures.push(Measure::of(bench.named("requests per drift"), "count", requests));
    Ok(())
}

/// Edits an object and returns the milliseconds until its correction, and the operator's requests meanwhile.
pub(super) async fn correction(bench: &Bench<'_>, object: &Object) -> Result<(f64, Requests), UserError> {
    let mark = bench.mark()?;
    edit(&object.api, &object.name, &baseline::manual_edit()).await?;
    bench.wait_for(mark, Kind::Event, 1).await?;
    let (all, own) = (bench.all(mark)?, bench.own(mark)?);
    let (edited, corrected) = (all.by(ADMIN_USER).of(Kind::Write), own.of(Kind::Write));
    Ok((between(ended(edited.0.first()), ended(corrected.0.first())), own))
}

/// Edits an unmanaged copy and corrects it immediately.
async fn baseline_correction(bench: &Bench<'_>, copy: &UnmanagedCopy) -> Result<f64, UserError> {
    let mark = bench.mark()?;
    edit(&copy.object.api, &copy.object.name, &baseline::manual_edit()).await?;
    copy.apply().await?;
    let writes = poll_until("the audit log has the edit and its correction", Duration::from_millis(5), async || {
        let writes = bench.all(mark)?.by(ADMIN_USER).of(Kind::Write).0;
        Ok((writes.len() >= 2).then_some(writes))
    })
    .await?;
    Ok(between(ended(writes.first()), ended(writes.get(1))))
}

fn ended(request: Option<&Request>) -> Timestamp {
    request.map(|request| request.ended).unwrap_or_default()
}
