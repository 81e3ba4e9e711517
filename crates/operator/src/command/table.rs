//! Prints tables for all commands.

use super::wrap;

/// No column is made narrower to fit a terminal.
const NARROWEST: usize = 12;

/// Gives a cell its colour, by its row and column.
type Paint<'a> = dyn Fn(usize, usize, &str) -> String + 'a;

/// Prints rows under a header, each column as wide as its widest cell; the last one is not padded.
pub(crate) fn table<const COLUMNS: usize>(header: [&str; COLUMNS], rows: &[[String; COLUMNS]]) -> String {
    within(header, rows, [usize::MAX; COLUMNS], &|_, _, text| text.to_owned())
}

/// The same for a terminal of this width: the widest of the given columns are cut. `paint` gives a cell its colour, by its row and
/// column; the header is row 0.
pub(crate) fn fitted<const COLUMNS: usize>(
    header: [&str; COLUMNS],
    rows: &[[String; COLUMNS]],
    cuttable: &[usize],
    terminal: Option<usize>,
    paint: &Paint<'_>,
) -> String {
    let Some(terminal) = terminal else { return within(header, rows, [usize::MAX; COLUMNS], paint) };
    within(header, rows, narrowed(natural(header, rows), cuttable, terminal), paint)
}

/// The same, but the given columns are wrapped, so that nothing is left out; where even that is too wide, each row is a list.
pub(crate) fn wrapped<const COLUMNS: usize>(
    header: [&str; COLUMNS],
    rows: &[[String; COLUMNS]],
    wrappable: &[usize],
    terminal: Option<usize>,
) -> String {
    let Some(terminal) = terminal else { return table(header, rows) };
    let widths = narrowed(natural(header, rows), wrappable, terminal);
    let is_word_longer = |row: &[String; COLUMNS]| {
        let mut words =
            row.iter().zip(widths).flat_map(|(cell, width)| cell.split_whitespace().map(move |word| (word, width)));
        words.any(|(word, width)| word.chars().count() > width)
    };
    if total(&widths) > terminal || rows.iter().any(is_word_longer) {
        return rows.iter().map(|row| list(header, row, terminal)).collect::<Vec<_>>().join("\n");
    }
    let header = block(&header.map(str::to_owned), widths);
    rows.iter().fold(header, |text, row| text + &block(row, widths))
}

/// One row as a list: its first cell, and below it the others with their names.
fn list<const COLUMNS: usize>(header: [&str; COLUMNS], row: &[String; COLUMNS], terminal: usize) -> String {
    let names = header.iter().skip(1).map(|name| name.chars().count()).max().unwrap_or_default();
    let cells = header.iter().zip(row).skip(1).filter(|(_, cell)| !cell.is_empty());
    let cells =
        cells.map(|(name, cell)| wrap::hanging(&format!("  {:<names$}  ", name.to_lowercase()), cell, Some(terminal)));
    row.iter().take(1).map(|cell| format!("{cell}\n")).chain(cells).collect()
}

fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + 2 * widths.len().saturating_sub(1)
}

/// One row whose cells are wrapped to these widths.
pub(crate) fn block<const COLUMNS: usize>(row: &[String; COLUMNS], widths: [usize; COLUMNS]) -> String {
    let mut cells = [const { Vec::new() }; COLUMNS];
    for (column, cell) in row.iter().enumerate() {
        cells[column] = wrap::lines(cell, widths[column]);
    }
    let height = cells.iter().map(Vec::len).max().unwrap_or_default();
    let line = |at: usize| {
        let parts = cells.iter().zip(widths).map(|(cell, width)| {
            let part = cell.get(at).map(String::as_str).unwrap_or_default();
            format!("{part}{}", " ".repeat(width.saturating_sub(wrap::width(part))))
        });
        format!("{}\n", parts.collect::<Vec<_>>().join("  ").trim_end())
    };
    (0..height).map(line).collect()
}

/// The widths for a terminal: the widest of these columns become narrower.
pub(crate) fn narrowed<const COLUMNS: usize>(
    mut widths: [usize; COLUMNS],
    columns: &[usize],
    terminal: usize,
) -> [usize; COLUMNS] {
    while total(&widths) > terminal {
        let widest = columns.iter().copied().max_by_key(|column| widths[*column]);
        match widest.filter(|column| widths[*column] > NARROWEST) {
            Some(column) => widths[column] -= 1,
            None => break,
        }
    }
    widths
}

/// The width of the terminal; nothing if the output goes elsewhere.
pub(crate) fn terminal_width() -> Option<usize> {
    terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| usize::from(width.0))
}

fn natural<const COLUMNS: usize>(header: [&str; COLUMNS], rows: &[[String; COLUMNS]]) -> [usize; COLUMNS] {
    let mut widths = header.map(|cell| cell.chars().count());
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    widths
}

fn within<const COLUMNS: usize>(
    header: [&str; COLUMNS],
    rows: &[[String; COLUMNS]],
    most: [usize; COLUMNS],
    paint: &Paint<'_>,
) -> String {
    let natural = natural(header, rows);
    let line = |(place, row): (usize, [&str; COLUMNS])| {
        let cells = row.iter().enumerate().map(|(column, cell)| {
            let shown = wrap::cut(cell, most[column]);
            // A colour has no width.
            let missing = natural[column].min(most[column]).saturating_sub(shown.chars().count());
            format!("{}{}", paint(place, column, &shown), " ".repeat(missing))
        });
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    let rows = rows.iter().map(|row| row.each_ref().map(String::as_str));
    std::iter::once(header).chain(rows).enumerate().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::{fitted, table, wrapped};

    #[test]
    fn columns_align_whatever_their_cells() {
        let rows = [["a long cell".into(), "b".into()], ["c".into(), String::new()]];
        assert_eq!(table(["X", "Y"], &rows), "X            Y\na long cell  b\nc\n");
    }

    #[test]
    fn the_widest_columns_are_cut_for_a_narrow_terminal() {
        let rows = [["short".into(), "a name that is long".into(), "InSync".into()]];
        let shown = |width| fitted(["A", "B", "C"], &rows, &[0, 1], width, &|_, _, text| text.to_owned());
        assert_eq!(shown(None), "A      B                    C\nshort  a name that is long  InSync\n");
        assert_eq!(shown(Some(29)), "A      B               C\nshort  a name that...  InSync\n");
        assert!(shown(Some(5)).contains("a name th..."), "{}", shown(Some(5)));
    }

    #[test]
    fn colours_have_no_width() {
        let rows = [["short".into(), "a name that is long".into()], ["longer".into(), "b".into()]];
        let paint = |row: usize, column: usize, text: &str| match (row, column) {
            (1, _) => format!("<{text}>"),
            _ => text.to_owned(),
        };
        let shown = fitted(["A", "B"], &rows, &[1], Some(22), &paint);
        assert_eq!(shown, "A       B\n<short>   <a name that...>\nlonger  b\n");
    }

    #[test]
    fn the_widest_columns_are_wrapped_for_a_narrow_terminal() {
        let rows = [["short".into(), "a text of some words".into()]];
        assert_eq!(wrapped(["A", "B"], &rows, &[1], None), "A      B\nshort  a text of some words\n");
        assert_eq!(wrapped(["A", "B"], &rows, &[1], Some(20)), "A      B\nshort  a text of\n       some words\n");
        assert_eq!(wrapped(["A", "B"], &rows, &[1], Some(12)), "short\n  b  a text\n     of some\n     words\n");
    }
}
