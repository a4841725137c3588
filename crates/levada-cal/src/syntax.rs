// SPDX-License-Identifier: Apache-2.0 OR MIT
//! The lossless syntax tree: it contains every byte of the file, including errors.

pub use crate::lex::SyntaxKind;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cal {}

impl rowan::Language for Cal {
    type Kind = SyntaxKind;

    fn kind_from_raw(raw: rowan::SyntaxKind) -> SyntaxKind {
        assert!(raw.0 <= SyntaxKind::Error as u16);
        // SAFETY: the enum is `repr(u16)`, has no gaps, and the value is within it.
        unsafe { std::mem::transmute::<u16, SyntaxKind>(raw.0) }
    }

    fn kind_to_raw(kind: SyntaxKind) -> rowan::SyntaxKind {
        rowan::SyntaxKind(kind as u16)
    }
}

pub type SyntaxNode = rowan::SyntaxNode<Cal>;
pub type SyntaxToken = rowan::SyntaxToken<Cal>;
pub type SyntaxElement = rowan::SyntaxElement<Cal>;
