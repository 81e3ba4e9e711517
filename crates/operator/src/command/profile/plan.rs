//! `plan show` and `plan list`: the plans of the advisor, as the status of its objects shows them.

use super::text::{Detail, document, text};
use super::{Profile, Profiles};
use crate::command::colour::{Colour, Palette};
use crate::command::print;
use crate::command::table::{self, terminal_width};
use crate::command::target::{Target, on_runtime};
use crate::pack;
use catalog::Catalog;
use jiff::Timestamp;
use runtime::Clock;
use serde_json::{Value, json};
use std::process::ExitCode;

#[derive(clap::Args)]
#[command(
    after_help = "Exit codes:\n  0  nothing to do: the plan is applied, or the profile is ignored\n  2  changes are pending: they wait for an approval, or are being applied\n  1  an error, or something failed or is missing"
)]
pub(crate) struct Show {
    /// The profile
    #[arg(value_name = "NAME", add = crate::command::completions::profiles())]
    name: String,
    #[command(flatten)]
    target: Target,
    /// Also show all that is applied, with the text of files and units
    #[arg(long)]
    full: bool,
    /// Output format
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
}

#[derive(clap::Args)]
pub(crate) struct List {
    #[command(flatten)]
    target: Target,
    /// Output format
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
}

#[derive(Clone, Copy, Default, clap::ValueEnum)]
enum Format {
    /// Text for a person, in colour on a terminal unless NO_COLOR is set
    #[default]
    Text,
    /// JSON
    Json,
    /// YAML
    Yaml,
}

impl Format {
    /// A document in this format; nothing for text.
    fn of(self, document: &Value) -> Option<String> {
        match self {
            Format::Text => None,
            Format::Json => Some(format!("{document:#}\n")),
            Format::Yaml => Some(catalog::yaml_text(document)),
        }
    }
}

pub(crate) fn show(arguments: &Show) -> anyhow::Result<ExitCode> {
    let Show { name, target, full, output } = arguments;
    let detail = if *full { Detail::Full } else { Detail::Differences };
    let catalog = pack::embedded()?;
    let profile = on_runtime(async {
        let profiles = Profiles::connect(target).await?;
        let profile = profiles.existing(name, &catalog).await?;
        Ok(profiles.with_costs(profile).await)
    })?;
    let shown = output.of(&document(&profile, detail));
    print(&shown.unwrap_or_else(|| text(&profile, detail, terminal_width(), Palette::of_output())))?;
    Ok(ExitCode::from(profile.exit_code()))
}

pub(crate) fn list(arguments: &List) -> anyhow::Result<ExitCode> {
    let catalog = pack::embedded()?;
    let found = on_runtime(async { Profiles::connect(&arguments.target).await?.all().await })?;
    let documents: Vec<Value> = found.iter().map(brief).collect();
    let shown = arguments.output.of(&Value::Array(documents));
    let now = Clock::start().now().wall;
    print(&shown.unwrap_or_else(|| rows(&found, &catalog, now, terminal_width(), Palette::of_output())))?;
    Ok(ExitCode::SUCCESS)
}

/// One profile of a list, for programs.
fn brief(profile: &Profile) -> Value {
    let status = &profile.status;
    json!({
        "name": profile.name,
        "action": profile.spec.action,
        "phase": profile.phase(),
        "why": profile.why(),
        "impact": status.impact_severity,
        "digest": status.plan_digest,
        "isCurrent": profile.is_current(),
        "created": profile.created.map(|created| created.to_string()),
    })
}

/// One line for each object, and for each profile of the catalogue that has none.
fn rows(found: &[Profile], catalog: &Catalog, now: Timestamp, terminal: Option<usize>, palette: Palette) -> String {
    let row = |profile: &Profile| {
        let status = &profile.status;
        let impact = status.impact_severity.map(|impact| format!("{impact:?}")).unwrap_or_default();
        let digest = status.plan_digest.as_deref().map(short).unwrap_or_default();
        let age = profile.created.map(|created| age(created, now)).unwrap_or_default();
        [profile.name.clone(), format!("{:?}", profile.spec.action), profile.phase(), impact, digest.to_owned(), age]
    };
    let mut rows: Vec<[String; 6]> = found.iter().map(row).collect();
    let is_absent = |name: &str| !found.iter().any(|profile| profile.name == name);
    let absent = catalog.profiles.iter().filter(|profile| is_absent(&profile.name));
    rows.extend(absent.map(|profile| [&profile.name, "-", "not created", "", "", ""].map(str::to_owned)));
    rows.sort();
    let paint = |place: usize, column: usize, text: &str| {
        let profile = place.checked_sub(1).and_then(|at| found.iter().find(|profile| profile.name == rows[at][0]));
        match (profile, column) {
            (Some(profile), 2) => palette.paint(super::text::of_phase(profile.status.phase), text),
            (None, 1..) if place > 0 => palette.paint(Colour::Dim, text),
            _ => text.to_owned(),
        }
    };
    table::fitted(["NAME", "ACTION", "PHASE", "IMPACT", "PLAN", "AGE"], &rows, &[0], terminal, &paint)
}

/// As many digits of a digest as `status` shows.
pub(super) fn short(digest: &str) -> &str {
    let digits = digest.strip_prefix("sha256:").unwrap_or(digest);
    digits.get(..8).unwrap_or(digits)
}

/// An age as kubectl writes it, in its largest unit.
fn age(since: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(since).as_secs().max(0);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7200 => format!("{}m", seconds / 60),
        7200..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86400),
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::sample;
    use super::{age, rows};
    use crate::command::colour::Palette;
    use crate::pack;
    use expect_test::expect;

    #[test]
    fn every_profile_is_one_line() {
        let mut catalog = pack::embedded().unwrap();
        catalog
            .profiles
            .retain(|profile| ["example-profile", "load-aware-rebalancing"].contains(&profile.name.as_str()));
        let now = "2026-11-17T11:00:00Z".parse().unwrap();
        expect![[r#"
            NAME                    ACTION  PHASE           IMPACT  PLAN      AGE
            example-profile         -       not created
            load-aware-rebalancing  DryRun  ReviewRequired  High    01234567  2h
        "#]]
        .assert_eq(&rows(&[sample()], &catalog, now, None, Palette::default()));
        let coloured = rows(&[sample()], &catalog, now, None, Palette::COLOURED);
        assert!(coloured.contains("\u{1b}[33mReviewRequired\u{1b}[0m"), "{coloured}");
    }

    #[test]
    fn an_age_is_in_its_largest_unit() {
        let of = |now: &str| age("2026-11-17T09:00:00Z".parse().unwrap(), now.parse().unwrap());
        let ages = [
            "2026-11-17T08:00:00Z",
            "2026-11-17T09:01:59Z",
            "2026-11-17T09:59:00Z",
            "2026-11-18T09:00:00Z",
            "2026-12-01T09:00:00Z",
        ];
        assert_eq!(ages.map(of), ["0s", "119s", "59m", "24h", "14d"]);
    }
}
