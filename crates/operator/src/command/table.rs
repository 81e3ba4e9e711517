//! Prints tables for all commands.

/// No column is made narrower to fit a terminal.
const NARROWEST: usize = 12;
/// Stands for what is cut off.
const CUT: &str = "...";

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
    let mut widths = natural(header, rows);
    let Some(terminal) = terminal else { return within(header, rows, [usize::MAX; COLUMNS], paint) };
    let total = |widths: &[usize]| widths.iter().sum::<usize>() + 2 * (COLUMNS - 1);
    while total(&widths) > terminal {
        let widest = cuttable.iter().copied().max_by_key(|column| widths[*column]);
        match widest.filter(|column| widths[*column] > NARROWEST) {
            Some(column) => widths[column] -= 1,
            None => break,
        }
    }
    within(header, rows, widths, paint)
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
            let shown = cut(cell, most[column]);
            // A colour has no width.
            let missing = natural[column].min(most[column]).saturating_sub(shown.chars().count());
            format!("{}{}", paint(place, column, &shown), " ".repeat(missing))
        });
        format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end())
    };
    let rows = rows.iter().map(|row| row.each_ref().map(String::as_str));
    std::iter::once(header).chain(rows).enumerate().map(line).collect()
}

fn cut(cell: &str, width: usize) -> String {
    if cell.chars().count() <= width {
        return cell.to_owned();
    }
    cell.chars().take(width.saturating_sub(CUT.len())).chain(CUT.chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::{fitted, table};

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
}
