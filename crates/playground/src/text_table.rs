//! Formats rows as aligned columns of text.

/// How a column is aligned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// To the left.
    Left,
    /// To the right.
    Right,
}

/// One line per row, with columns as wide as their widest cell and without trailing spaces.
pub fn lines<const COLUMNS: usize>(alignment: [Align; COLUMNS], rows: &[[String; COLUMNS]]) -> Vec<String> {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let widths: [usize; COLUMNS] = std::array::from_fn(width);
    let line = |row: &[String; COLUMNS]| {
        let cells: [String; COLUMNS] = std::array::from_fn(|column| {
            let (cell, width) = (&row[column], widths[column]);
            match alignment[column] {
                Align::Left => format!("{cell:<width$}"),
                Align::Right => format!("{cell:>width$}"),
            }
        });
        cells.join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::{Align, lines};

    #[test]
    fn columns_are_aligned_and_trailing_spaces_are_removed() {
        let rows = [["a", "10", "x"], ["bcd", "2", ""]].map(|row| row.map(str::to_owned));
        assert_eq!(lines([Align::Left, Align::Right, Align::Left], &rows), ["a    10  x", "bcd   2"]);
    }
}
