//! Prints tables for all commands.

/// Prints rows under a header, each column as wide as its widest cell; the last one is not padded.
pub(crate) fn table<const COLUMNS: usize>(header: [&str; COLUMNS], rows: &[[String; COLUMNS]]) -> String {
    let mut widths = header.map(|cell| cell.chars().count());
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |row: [&str; COLUMNS]| {
        let cells: Vec<String> = row.iter().zip(widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        format!("{}\n", cells.join("  ").trim_end())
    };
    let rows = rows.iter().map(|row| line(row.each_ref().map(String::as_str)));
    std::iter::once(line(header)).chain(rows).collect()
}

#[cfg(test)]
mod tests {
    use super::table;

    #[test]
    fn columns_align_whatever_their_cells() {
        let rows = [["a long cell".into(), "b".into()], ["c".into(), String::new()]];
        assert_eq!(table(["X", "Y"], &rows), "X            Y\na long cell  b\nc\n");
    }
}
