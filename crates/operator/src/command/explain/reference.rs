//! `explain annotations`, `explain events` and `explain states`: the tables that the reference pages are made of.

use crate::command::table::{terminal_width, wrapped};
use crate::command::{Format, print};
use crate::pack::Pack;
use api::reference::{ADVISOR_EVENTS, ANNOTATIONS, EVENTS, FLEET_EVENTS, ON_HCO, STATES};
use serde_json::{Value, json};

#[derive(clap::Args)]
pub(super) struct Output {
    /// Output format
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
}

#[derive(clap::Args)]
pub(super) struct OfPack {
    #[command(flatten)]
    pack: Pack,
    #[command(flatten)]
    output: Output,
}

pub(super) fn annotations(arguments: &OfPack) -> anyhow::Result<()> {
    let catalog = arguments.pack.load()?;
    let short = |key: &str| key.strip_prefix(api::annotation::PREFIX).unwrap_or(key).to_owned();
    let own = ANNOTATIONS
        .iter()
        .map(|row| [short(row.key), row.on.into(), row.values.into(), row.default.into(), row.meaning.into()]);
    let of_pack = catalog.all_settings().into_iter().map(|row| {
        let docs = if row.feature.is_empty() { row.docs } else { format!("{}: {}", row.feature, row.docs) };
        [short(&row.key), ON_HCO.into(), row.values, row.default, docs]
    });
    let rows: Vec<[String; 5]> = own.chain(of_pack).collect();
    let names = ["annotation", "on", "values", "default", "meaning"];
    show(&arguments.output, names, &rows, &format!("\nEvery key has the prefix {}\n", api::annotation::PREFIX))
}

pub(super) fn events(output: &Output) -> anyhow::Result<()> {
    let kind = |is_warning: bool| if is_warning { "Warning" } else { "Normal" };
    let rows: Vec<[String; 4]> = EVENTS
        .iter()
        .chain(&ADVISOR_EVENTS)
        .chain(&FLEET_EVENTS)
        .map(|row| [row.name.into(), kind(row.warning).into(), row.meaning.into(), row.action.into()])
        .collect();
    show(output, ["reason", "type", "meaning", "action"], &rows, "")
}

pub(super) fn states(output: &Output) -> anyhow::Result<()> {
    let rows: Vec<[String; 3]> =
        STATES.iter().map(|row| [row.word.into(), row.meaning.into(), row.next.into()]).collect();
    show(output, ["state", "meaning", "next"], &rows, "")
}

fn show<const COLUMNS: usize>(
    output: &Output,
    names: [&str; COLUMNS],
    rows: &[[String; COLUMNS]],
    end: &str,
) -> anyhow::Result<()> {
    let header = names.map(str::to_uppercase);
    print(&match output.output {
        Format::Text => {
            // The first column is what a person looks for.
            let columns: Vec<usize> = (1..COLUMNS).collect();
            format!("{}{end}", wrapped(header.each_ref().map(String::as_str), rows, &columns, terminal_width()))
        }
        Format::Json => {
            let row = |row: &[String; COLUMNS]| -> Value {
                names.iter().zip(row).map(|(name, cell)| ((*name).to_owned(), json!(cell))).collect()
            };
            format!("{:#}\n", rows.iter().map(row).collect::<Value>())
        }
    })
}
