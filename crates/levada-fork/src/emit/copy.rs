// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Copies the user's text, with the constructs in it replaced.

use super::{Instead, Piece, What, Writer};
use crate::parse::Range;

impl Writer<'_> {
    /// Copies a range, with all constructs in it replaced.
    pub(super) fn copy(&self, range: Range, pieces: &mut Vec<Piece>) {
        let first = self
            .constructs
            .partition_point(|(r, _)| r.start < range.start);
        let inner = self.constructs[first..].iter();
        let inner = inner.take_while(|(r, _)| r.start < range.end);
        let inner = inner.map(|(r, what)| (*r, *what));
        self.copy_with(
            range,
            inner,
            |what, pieces| {
                pieces.push(Piece::Begin(what.0.start));
                self.construct(what.1, None, pieces);
                pieces.push(Piece::End);
            },
            pieces,
        );
    }

    /// Copies a range, with all constructs in it except `but` replaced, and the given parts as well.
    pub(super) fn copy_instead(
        &self,
        range: Range,
        but: What,
        instead: &[Instead],
        pieces: &mut Vec<Piece>,
    ) {
        let first = self
            .constructs
            .partition_point(|(r, _)| r.start < range.start);
        let inner = self.constructs[first..].iter();
        let inner = inner.take_while(|(r, _)| r.start < range.end);
        let inner = inner.filter(|(_, what)| *what != but);
        let mut all: Vec<(Range, Result<What, usize>)> =
            inner.map(|(r, what)| (*r, Ok(*what))).collect();
        all.extend(instead.iter().enumerate().map(|(i, (r, _))| (*r, Err(i))));
        all.sort_by_key(|(r, what)| (r.start, std::cmp::Reverse(r.end), what.is_ok()));
        self.copy_with(
            range,
            all.into_iter(),
            |what, pieces| match what.1 {
                Ok(construct) => {
                    pieces.push(Piece::Begin(what.0.start));
                    self.construct(construct, None, pieces);
                    pieces.push(Piece::End);
                }
                Err(i) => pieces.extend_from_slice(&instead[i].1),
            },
            pieces,
        );
    }

    fn copy_with<T>(
        &self,
        range: Range,
        inner: impl Iterator<Item = (Range, T)>,
        write: impl Fn((Range, T), &mut Vec<Piece>),
        pieces: &mut Vec<Piece>,
    ) {
        let mut at = range.start;
        for (place, what) in inner {
            if place.start < at || place.end > range.end {
                continue;
            }
            if place.start > at {
                pieces.push(Piece::Copy {
                    from: at,
                    to: place.start,
                    lead: at > range.start,
                    gap: true,
                });
            }
            write((place, what), pieces);
            at = place.end;
        }
        if at < range.end {
            pieces.push(Piece::Copy {
                from: at,
                to: range.end,
                lead: at > range.start,
                gap: false,
            });
        }
    }
}
