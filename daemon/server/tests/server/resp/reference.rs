//! What is written from the table of commands.

use tollgate_server::resp_reference;

use crate::assert_up_to_date;

#[test]
fn the_reference_is_what_the_table_says() {
    assert_up_to_date("docs/resp.md", &resp_reference());
}
