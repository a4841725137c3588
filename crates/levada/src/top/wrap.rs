// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Wraps and shortens text at word boundaries for narrow terminals.

use ratatui::text::Line;

const MORE: &str = " …";

fn width(text: &str) -> usize {
    Line::from(text).width()
}

/// Splits off the longest prefix of `text` that fits in `cells`.
fn split(text: &str, cells: usize) -> (&str, &str) {
    let ends = text.char_indices().map(|(at, c)| at + c.len_utf8());
    let fits = ends.take_while(|&end| width(&text[..end]) <= cells).last();
    // At least one character, so that the loop ends.
    let one = text.chars().next().map_or(0, char::len_utf8);
    text.split_at(fits.unwrap_or(one))
}

/// Wraps to lines of at most `cells`. Continuation lines are indented a little more than the first line.
pub fn wrapped(text: &str, cells: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for sentence in text.lines() {
        let words = sentence.trim_start();
        let begins = sentence.len() - words.len();
        let (first, then) = (" ".repeat(begins), " ".repeat(begins + 2));
        let mut line = first;
        let mut empty = true;
        for mut word in words.split_whitespace() {
            let needs = width(&line) + usize::from(!empty) + width(word);
            if needs > cells && !empty {
                lines.push(std::mem::replace(&mut line, then.clone()));
                empty = true;
            }
            // A word that is longer than a line is broken.
            while empty && width(&line) + width(word) > cells && !word.is_empty() {
                let (part, rest) = split(word, cells.saturating_sub(width(&line)));
                if rest.is_empty() {
                    break;
                }
                lines.push(std::mem::replace(&mut line, then.clone()) + part);
                word = rest;
            }
            if !empty {
                line.push(' ');
            }
            line.push_str(word);
            empty = false;
        }
        lines.push(line);
    }
    lines
}

/// The longest suffix of `text` that fits in `cells`, with a mark if it was shortened.
pub fn ending(text: &str, cells: usize) -> String {
    if width(text) <= cells {
        return text.to_string();
    }
    let begins = text.char_indices().map(|(at, _)| &text[at..]);
    let mut fit = begins.filter(|rest| width(rest) < cells);
    format!("…{}", fit.next().unwrap_or_default())
}

/// Wraps to at most `most` lines; the last line shows whether text was cut off.
pub fn shortened(text: &str, cells: usize, most: usize) -> Vec<String> {
    let mut lines = wrapped(text, cells);
    if lines.len() <= most {
        return lines;
    }
    lines.truncate(most);
    if let Some(last) = lines.last_mut() {
        while width(last) + width(MORE) > cells && last.trim_end().contains(' ') {
            let word = last.trim_end().rfind(' ').unwrap_or(0);
            last.truncate(word);
        }
        let (kept, _) = split(last, cells.saturating_sub(width(MORE)));
        *last = kept.trim_end().to_string() + MORE;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_are_wrapped_at_words_and_shortened_at_one() {
        let text = "in a circle:\n  one waits for two\n";
        assert_eq!(wrapped(text, 40), ["in a circle:", "  one waits for two"]);
        assert_eq!(
            wrapped(text, 11),
            ["in a", "  circle:", "  one waits", "    for two"]
        );
        assert_eq!(shortened(text, 40, 2).len(), 2);
        assert_eq!(shortened(text, 40, 1), ["in a circle: …"]);
        assert_eq!(shortened(text, 13, 1), ["in a …"]);
        assert_eq!(shortened("one two three", 9, 1), ["one two …"]);
    }

    #[test]
    fn long_words_are_broken_and_wrapping_ends() {
        assert_eq!(wrapped("abcdefgh", 4), ["abcd", "  ef", "  gh"]);
        for cells in 0..6 {
            let lines = shortened("  a bücher 漢字漢字 of_many_letters", cells, 3);
            assert!(!lines.is_empty() && lines.len() <= 3);
        }
        assert!(wrapped("", 10).is_empty());
    }
}
