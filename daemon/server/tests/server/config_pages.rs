//! What is written from the table of fields.

use tollgate_server::config_reference;

use crate::renewed;

#[test]
fn the_reference_is_what_the_table_says() {
    renewed("docs/configuration.md", &config_reference());
}
