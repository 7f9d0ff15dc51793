//! The page that is generated from the table of fields.

use tollgate_config::config_reference;

use crate::assert_up_to_date;

#[test]
fn reference_page_is_up_to_date() {
    assert_up_to_date("docs/configuration.md", &config_reference());
}
