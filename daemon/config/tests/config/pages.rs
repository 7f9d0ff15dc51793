//! What is written from the table of fields.

use tollgate_config::config_reference;

use crate::assert_up_to_date;

#[test]
fn the_reference_is_what_the_table_says() {
    assert_up_to_date("docs/configuration.md", &config_reference());
}
