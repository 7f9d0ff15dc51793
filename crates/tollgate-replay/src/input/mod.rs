//! Files, plain or compressed, and standard input, as blocks of whole lines.
