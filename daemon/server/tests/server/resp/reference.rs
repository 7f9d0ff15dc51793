//! What is written from the table of commands.

use tollgate_server::resp_reference;

use crate::renewed;

#[test]
fn the_reference_is_what_the_table_says() {
    renewed("docs/resp.md", &resp_reference());
}
