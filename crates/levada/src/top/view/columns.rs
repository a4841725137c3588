// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Columns of a table. On a narrow terminal the least important columns are omitted.

use ratatui::layout::Constraint;
use ratatui::style::Style;
use ratatui::widgets::{Row, Table};

/// Minimum width of the name; columns are omitted to keep it.
const NAME_CELLS_MIN: u16 = 16;

/// Cells between two columns.
const GAP_CELLS: u16 = 1;

/// The columns of a table that fit; the first one takes the remaining width.
pub(super) struct Columns<'a, const N: usize> {
    kept: [bool; N],
    all: [(&'a str, u16, u8); N],
}

impl<'a, const N: usize> Columns<'a, N> {
    /// Selects columns that fit. Each has a head, a width, and a rank; the lowest rank is omitted last.
    pub(super) fn fitting(width: u16, all: [(&'a str, u16, u8); N]) -> Columns<'a, N> {
        let mut order: Vec<usize> = (1..N).collect();
        order.sort_by_key(|&i| all[i].2);
        let mut kept = [false; N];
        kept[0] = true;
        let mut taken = NAME_CELLS_MIN;
        for i in order {
            let with = taken + all[i].1 + GAP_CELLS;
            if with > width {
                break;
            }
            (kept[i], taken) = (true, with);
        }
        Columns { kept, all }
    }

    pub(super) fn of<T>(&self, cells: [T; N]) -> Vec<T> {
        let cells = cells.into_iter().zip(self.kept);
        cells
            .filter_map(|(cell, kept)| kept.then_some(cell))
            .collect()
    }

    /// The width of the first column.
    pub(super) fn first(&self, width: u16) -> u16 {
        let others = self.of(self.all).into_iter().skip(1);
        width.saturating_sub(others.map(|(_, cells, _)| cells + GAP_CELLS).sum())
    }

    pub(super) fn table(&self, rows: Vec<Row<'a>>) -> Table<'a> {
        let widths = self.of(self.all).into_iter().enumerate();
        let widths = widths.map(|(i, (_, cells, _))| match i {
            0 => Constraint::Fill(1),
            _ => Constraint::Length(cells),
        });
        let head = self.of(self.all).into_iter().map(|(head, _, _)| head);
        Table::new(rows, widths).header(Row::new(head).style(Style::new().bold()))
    }
}
