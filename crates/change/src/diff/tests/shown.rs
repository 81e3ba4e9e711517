//! What is shown of a whole object.

use super::{file, machine_config};
use serde_json::json;

#[test]
fn an_object_is_shown_with_the_files_and_units_that_a_difference_shows() {
    let object = machine_config(
        &json!([file("/etc/a", 0o644, "data:,one%0A"), file("/etc/shadow", 0o600, "data:,x%0A")]),
        &json!([{"name": "a.service", "contents": "a\n"}, {"name": "b.service", "contents": "Environment=TOKEN=abc\n"}]),
        &[],
    );
    let kind = super::super::kind_of(&object);
    let shown = super::super::shown_object(&kind, &object).unwrap();
    assert_eq!(shown.pointer("/spec/config/storage/files/0"), object.pointer("/spec/config/storage/files/0"));
    assert_eq!(shown.pointer("/spec/config/systemd/units/0"), object.pointer("/spec/config/systemd/units/0"));
    let text = shown.to_string();
    assert!(!text.contains("x%0A") && !text.contains("abc"), "{text}");
}
