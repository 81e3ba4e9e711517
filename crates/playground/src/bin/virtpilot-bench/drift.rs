//! From a hand edit to its correction, beside a client that knows at once what to do.

use super::bare::{self, Twin};
use super::measure::{Measure, count};
use super::pack::{Bench, between, edit};
use jiff::Timestamp;
use playground::Trouble;
use playground::audit::{Kind, Request};

const ADMIN: &str = "playground-admin";

pub(crate) async fn measure(bench: &Bench<'_>, rounds: usize, measures: &mut Vec<Measure>) -> Result<(), Trouble> {
    let twins = bare::twins(bench).await?;
    bench.quiet().await?;
    let (mut ours, mut limits, mut requests) = ([vec![], vec![]], [vec![], vec![]], Vec::new());
    for round in 0..rounds {
        eprint!("\r{}: drift {} of {rounds}   ", bench.name, round + 1);
        let (object, twin) = &twins[round % twins.len()];
        let which = usize::from(!twin.object.is_core);
        limits[which].push(corrected_by_a_bare_client(bench, twin).await?);
        let mark = bench.mark()?;
        edit(&object.api, &object.name, &bare::change()).await?;
        bench.until(mark, Kind::Event, 1).await?;
        let all = bench.all(mark)?;
        let own = bench.own(mark)?;
        ours[which].push(between(ended(all.by(ADMIN).of(Kind::Write).0.first()), ended(own.of(Kind::Write).0.first())));
        requests.push(count(own.count() - own.of(Kind::Watch).count()));
    }
    eprintln!();
    for (which, name) in ["core kinds", "CRDs"].into_iter().enumerate() {
        let [our, limit] = [&mut ours[which], &mut limits[which]].map(std::mem::take);
        let our = Measure::of(bench.named(&format!("drift of {name}, edit to correction")), "ms", our);
        let limit = Measure::of(bench.named(&format!("the same by a bare client, {name}")), "ms", limit);
        let ratio = our.beside(&limit, &bench.named(&format!("drift of {name}")));
        measures.extend([our, limit, ratio]);
    }
    measures.push(Measure::of(bench.named("requests per drift"), "count", requests));
    Ok(())
}

/// Edits and puts right at once, with nothing between.
async fn corrected_by_a_bare_client(bench: &Bench<'_>, twin: &Twin) -> Result<f64, Trouble> {
    let mark = bench.mark()?;
    edit(&twin.object.api, &twin.object.name, &bare::change()).await?;
    twin.apply().await?;
    let writes = loop {
        let writes = bench.all(mark)?.by(ADMIN).of(Kind::Write).0;
        if writes.len() >= 2 {
            break writes;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    };
    Ok(between(ended(writes.first()), ended(writes.get(1))))
}

fn ended(request: Option<&Request>) -> Timestamp {
    request.map(|request| request.ended).unwrap_or_default()
}
