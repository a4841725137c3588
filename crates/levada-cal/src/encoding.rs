// SPDX-License-Identifier: Apache-2.0 OR MIT
//! Character encodings of source files: UTF-8; Latin-1 in old files; UTF-16 with a byte order mark, as some editors
//! write it.

/// The encoding of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    Utf8,
    Latin1,
    Utf16Le,
    Utf16Be,
}

/// The text of a file, and its encoding. A byte order mark stays in the text.
pub fn decode(bytes: &[u8]) -> (String, Encoding) {
    let wide = |of: fn([u8; 2]) -> u16| {
        let units = bytes.chunks_exact(2).map(|pair| of([pair[0], pair[1]]));
        char::decode_utf16(units)
            .map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER))
            .collect()
    };
    match bytes {
        [0xff, 0xfe, ..] => (wide(u16::from_le_bytes), Encoding::Utf16Le),
        [0xfe, 0xff, ..] => (wide(u16::from_be_bytes), Encoding::Utf16Be),
        _ => match std::str::from_utf8(bytes) {
            Ok(text) => (text.to_owned(), Encoding::Utf8),
            // Every byte is a character.
            Err(_) => {
                let text = bytes.iter().map(|&b| char::from(b)).collect();
                (text, Encoding::Latin1)
            }
        },
    }
}

/// The bytes of a text from [`decode`], which may have been changed without new characters.
pub fn encode(text: &str, encoding: Encoding) -> Vec<u8> {
    match encoding {
        Encoding::Utf8 => text.as_bytes().to_vec(),
        Encoding::Latin1 => text.chars().map(|c| c as u8).collect(),
        Encoding::Utf16Le => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        Encoding::Utf16Be => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
    }
}

/// Replaces each carriage return that ends a line alone by a line feed. Positions do not change.
pub fn line_feeds(text: String) -> String {
    let bytes = text.as_bytes();
    let alone = |i: usize| bytes[i] == b'\r' && bytes.get(i + 1) != Some(&b'\n');
    if (0..bytes.len()).any(alone) {
        let mut rest = text.chars().peekable();
        let mut out = String::with_capacity(text.len());
        while let Some(c) = rest.next() {
            let alone = c == '\r' && rest.peek() != Some(&'\n');
            out.push(if alone { '\n' } else { c });
        }
        out
    } else {
        text
    }
}

/// The most frequent line ending of a text: `"\n"`, `"\r\n"` or `"\r"`.
pub fn line_end(text: &str) -> &'static str {
    let both = text.matches("\r\n").count();
    let feeds = text.matches('\n').count() - both;
    let returns = text.matches('\r').count() - both;
    if both > feeds && both >= returns {
        "\r\n"
    } else if returns > feeds {
        "\r"
    } else {
        "\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_decoded_is_encoded_as_it_was() {
        let files: [(&[u8], &str, Encoding); 4] = [
            (b"gr\xc3\xb6", "gr\u{f6}", Encoding::Utf8),
            (b"gr\xf6", "gr\u{f6}", Encoding::Latin1),
            (b"\xff\xfeg\0\xf6\0", "\u{feff}g\u{f6}", Encoding::Utf16Le),
            (b"\xfe\xff\0g\0\xf6", "\u{feff}g\u{f6}", Encoding::Utf16Be),
        ];
        for (bytes, text, encoding) in files {
            assert_eq!(decode(bytes), (text.to_owned(), encoding));
            assert_eq!(encode(text, encoding), bytes);
        }
    }

    #[test]
    fn lines_end_as_most_of_them_do() {
        assert_eq!(line_feeds("a\rb\r\nc\r".into()), "a\nb\r\nc\n");
        assert_eq!(line_end("a\r\nb\r\nc\n"), "\r\n");
        assert_eq!(line_end("a\rb\r\n\r"), "\r");
        assert_eq!(line_end("a\r\nb\n"), "\n");
        assert_eq!(line_end(""), "\n");
    }
}
