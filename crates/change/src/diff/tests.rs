//! What is shown of changes.

mod shown;

use super::{Difference, Edit, Shown, of_answer, of_wanted};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

fn printed(differences: &[Difference]) -> String {
    let value = |shown: &Shown| match shown {
        Shown::Value(value) => value.to_string(),
        Shown::Summary(summary) | Shown::Text { summary, .. } => format!("({summary})"),
        Shown::Redacted => "redacted".to_owned(),
        Shown::Unknown => "?".to_owned(),
    };
    let line = |difference: &Difference| {
        let path = &difference.path;
        match &difference.edit {
            Edit::Added { after } => format!("+ {path}: {}\n", value(after)),
            Edit::Removed { before } => format!("- {path}: {}\n", value(before)),
            Edit::Changed { before, after } => format!("~ {path}: {} -> {}\n", value(before), value(after)),
            Edit::Lines { lines } => format!("~ {path}\n    {}\n", lines.join("\n    ")),
        }
    };
    differences.iter().map(line).collect()
}

/// An object whose fields we own as given.
fn owned(mut object: Value, fields: &Value) -> Value {
    object["metadata"]["managedFields"] = json!([
        {"manager": "us", "operation": "Apply", "fieldsV1": fields},
        {"manager": "them", "operation": "Update", "fieldsV1": {"f:spec": {"f:theirs": {}}}},
    ]);
    object
}

fn check_answer(before: Option<&Value>, after: &Value, expected: &Expect) {
    expected.assert_eq(&printed(&of_answer(before, after, "us")));
}

fn service(spec: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s"}, "spec": spec})
}

#[test]
fn only_fields_that_we_own_before_or_after_are_shown() {
    let port = |number: i64, more: Value| {
        let mut item = json!({".": {}, "f:port": {}});
        item.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        (format!(r#"k:{{"port":{number}}}"#), item)
    };
    let ((one, first), (two, second)) = (port(1, json!({"f:name": {}})), port(2, json!({})));
    let before = owned(
        service(
            &json!({"type": "A", "dropped": 1, "theirs": 1, "ports": [{"port": 1, "name": "a", "nodePort": 7}, {"port": 2}]}),
        ),
        &json!({"f:spec": {"f:type": {}, "f:dropped": {}, "f:ports": {&one: first, &two: second}}}),
    );
    let after = owned(
        service(&json!({"type": "B", "theirs": 2, "filled": 3, "ports": [{"port": 1, "name": "b", "nodePort": 8}]})),
        &json!({"f:spec": {"f:type": {}, "f:ports": {&one: first}}}),
    );
    check_answer(
        Some(&before),
        &after,
        &expect![[r#"
            - .spec.dropped: 1
            ~ .spec.ports[port=1].name: "a" -> "b"
            - .spec.ports[port=2]: {"port":2}
            ~ .spec.type: "A" -> "B"
        "#]],
    );
    check_answer(
        None,
        &after,
        &expect![[r#"
            + .spec: {"ports":[{"name":"b","port":1}],"type":"B"}
        "#]],
    );
    check_answer(Some(&after), &after, &expect![""]);
}

#[test]
fn our_own_label_and_annotations_are_no_difference() {
    let metadata = |stamp: &str| json!({"name": "m", "labels": {"app": "x", "platform.kubevirt.io/managed-by": "us"}, "annotations": {"platform.kubevirt.io/budget": stamp}});
    let map = |stamp: &str| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata(stamp)});
    let fields = json!({"f:metadata": {"f:labels": {"f:app": {}, "f:platform.kubevirt.io/managed-by": {}},
        "f:annotations": {"f:platform.kubevirt.io/budget": {}}}});
    check_answer(Some(&owned(map("1"), &fields)), &owned(map("2"), &fields), &expect![""]);
    check_answer(
        None,
        &owned(map("1"), &fields),
        &expect![[r#"
            + .metadata.labels.app: "x"
        "#]],
    );
    expect![[r#"
        + .metadata.labels.app: "x"
    "#]]
    .assert_eq(&printed(&of_wanted(None, &map("1"), &[])));
}

#[test]
fn a_field_with_one_owner_is_compared_part_by_part() {
    let rules = |rules: Value| {
        owned(json!({"apiVersion": "v1", "kind": "X", "metadata": {}, "rules": rules}), &json!({"f:rules": {}}))
    };
    let text = |line: &str| format!("first\n{line}\nlast\n");
    check_answer(
        Some(&rules(json!({"named": [{"name": "a", "v": 1}, {"name": "b"}], "plain": ["x", "y"], "order": [1, 2],
            "mixed": [{"v": 1}, 2], "text": text("old"), "note": text("a")}))),
        &rules(json!({"named": [{"name": "c", "v": 2}, {"name": "a", "v": 2}], "plain": ["y", "z"], "order": [2, 1],
            "mixed": [{"v": 2}], "text": text("new"), "more": text("b")})),
        &expect![[r#"
            ~ .rules.mixed[0].v: 1 -> 2
            - .rules.mixed[1]: 2
            + .rules.more: (3 lines)
            ~ .rules.named[name="a"].v: 1 -> 2
            - .rules.named[name="b"]: {"name":"b"}
            + .rules.named[name="c"]: {"name":"c","v":2}
            - .rules.note: (3 lines)
            ~ .rules.order: [1,2] -> [2,1]
            - .rules.plain[]: "x"
            + .rules.plain[]: "z"
            ~ .rules.text
                -old
                +new
        "#]],
    );
}

#[test]
fn a_large_object_that_is_created_is_shown_part_by_part() {
    let long = "x".repeat(70);
    let wanted = json!({"apiVersion": "v1", "kind": "X", "metadata": {"name": "x", "labels": {"app": "y"}},
        "spec": {"short": {"a": 1}, "named": [{"name": "a", "v": long}], "plain": [long, "b"], "mixed": [[long]]}});
    let shown = printed(&of_wanted(None, &wanted, &[])).replace(&long, "LONG");
    expect![[r#"
        + .metadata.labels.app: "y"
        + .spec.mixed[0][]: "LONG"
        + .spec.named[name="a"].name: "a"
        + .spec.named[name="a"].v: "LONG"
        + .spec.plain[]: "LONG"
        + .spec.plain[]: "b"
        + .spec.short: {"a":1}
    "#]]
    .assert_eq(&shown);
}

#[test]
fn without_the_server_what_is_wanted_and_not_so_is_shown() {
    let live = service(
        &json!({"type": "A", "theirs": 1, "ports": [{"port": 1, "protocol": "TCP", "name": "a"}], "text": "a\nb\n"}),
    );
    let wanted = service(
        &json!({"type": "B", "ports": [{"port": 1, "name": "b"}], "text": "a\nc\n", "new": {"a": "password=x"}}),
    );
    expect![[r#"
        + .spec.new: {"a":"(redacted)"}
        ~ .spec.ports[0].name: "a" -> "b"
        ~ .spec.text
            -b
            +c
        ~ .spec.type: "A" -> "B"
        - .spec.gone: ?
    "#]]
    .assert_eq(&printed(&of_wanted(Some(&live), &wanted, &[".spec.gone".to_owned()])));
}

#[test]
fn no_value_of_a_secret_is_shown() {
    let all = json!({"f:data": {}, "f:spec": {}});
    let secret = |kind: &str, value: &str| {
        owned(
            json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "x"}, "data": {"a": value, "b": "plain"},
            "spec": {"password": value, "args": ["--token", value], "text": format!("a\ntoken: {value}\n"),
                "env": [{"name": "A", "value": value}], "more": [{"name": "api-token", "value": value}]}}),
            &all,
        )
    };
    for kind in ["Secret", "ConfigMap", "MachineConfig"] {
        for before in [None, Some(secret(kind, "hunter1"))] {
            let after = secret(kind, "hunter2");
            let mut shown = vec![of_answer(before.as_ref(), &after, "us")];
            let mut wanted = after.clone();
            wanted["data"]["a"] = json!("password=hunter2");
            shown.push(of_wanted(before.as_ref(), &wanted, &[]));
            for differences in shown {
                let text = printed(&differences);
                let is_secret = kind == "Secret" || text.contains(".spec.");
                assert!(is_secret, "{text}");
                let spec: Vec<&str> = text.lines().filter(|line| line.contains(".spec") || kind == "Secret").collect();
                assert!(!spec.concat().contains("hunter"), "{text}");
            }
        }
    }
}

fn machine_config(files: &Value, units: &Value, arguments: &[&str]) -> Value {
    let config = json!({"ignition": {"version": "3.2.0"}, "storage": {"files": files}, "systemd": {"units": units}});
    let object = json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig", "metadata": {"name": "m"},
        "spec": {"config": config, "kernelArguments": arguments}});
    let inside = json!({"f:ignition": {"f:version": {}}, "f:storage": {"f:files": {}}, "f:systemd": {"f:units": {}}});
    owned(object, &json!({"f:spec": {"f:config": inside, "f:kernelArguments": {}}}))
}

fn file(path: &str, mode: u32, source: &str) -> Value {
    json!({"path": path, "mode": mode, "contents": {"source": source}})
}

#[test]
fn files_and_units_of_a_machine_config_are_decoded() {
    let gzip = |source: &str| json!({"path": "/bin/tool", "mode": 0o755, "contents": {"source": source, "compression": "gzip"}});
    let before = machine_config(
        &json!([
            file("/etc/a", 0o644, "data:,one%0Atwo%0Athree%0A"),
            file("/etc/gone", 0o600, "data:;base64,AP8="),
            file("/etc/same", 0o644, "data:,x"),
            file("/etc/api-key", 0o600, "data:,one"),
            file("/etc/conf", 0o600, "data:,token%3Done"),
            gzip("data:;base64,QUJD"),
        ]),
        &json!([
            {"name": "old.service", "contents": "a\n"},
            {"name": "run.service", "enabled": true, "contents": "[Unit]\nAfter=a\n", "dropins": [{"name": "d", "contents": "x\n"}]},
        ]),
        &["quiet"],
    );
    let after = machine_config(
        &json!([
            file("/etc/a", 0o600, "data:;base64,b25lCjIKdGhyZWUK"),
            file("/etc/new", 0o644, "data:text/plain;charset=utf-8,a%0Ab%0A"),
            file("/etc/same", 0o644, "data:,x"),
            file("/etc/api-key", 0o600, "data:,two"),
            file("/etc/conf", 0o600, "data:,token%3Dtwo"),
            file("/etc/far", 0o600, "https://example.com/x"),
            gzip("data:;base64,QUJE"),
            json!({"path": "/bin/packed", "mode": 0o755, "contents": {"source": "data:;base64,H4sIAAAAAAACA1NW1E/KzNMvzuAqLk8syM9T0E3kAgAXtu/2FAAAAA==", "compression": "gzip"}}),
        ]),
        &json!([
            {"name": "run.service", "enabled": false, "contents": "[Unit]\nAfter=b\n", "dropins": [{"name": "d", "contents": "y\n"}]},
            {"name": "new.service", "enabled": true, "contents": "a\nb\nc\n"},
            {"name": "off.service", "mask": true},
        ]),
        &["quiet", "psi=1"],
    );
    let expected = expect![[r#"
        + .spec.kernelArguments[]: "psi=1"
        + file /bin/packed: (0755, 2 lines)
        ~ file /bin/tool: (compressed, 3 bytes, sha256 b5d4045c) -> (compressed, 3 bytes, sha256 69f0fb8c)
        ~ file /etc/a
            -two
            +2
        ~ file /etc/a mode: (0644) -> (0600)
        ~ file /etc/api-key: redacted -> redacted
        ~ file /etc/conf: redacted -> redacted
        + file /etc/far: (0600, fetched from elsewhere)
        - file /etc/gone: (0600, binary, 2 bytes, sha256 06eb7d6a)
        + file /etc/new: (0644, 2 lines)
        + unit new.service: (enabled, 3 lines)
        + unit off.service: (masked)
        - unit old.service: (1 line)
        ~ unit run.service
            -After=a
            +After=b
        ~ unit run.service dropin d
            -x
            +y
        ~ unit run.service .enabled: true -> false
    "#]];
    check_answer(Some(&before), &after, &expected);
}

#[test]
fn the_text_of_a_new_file_is_unpacked_unless_it_is_secret() {
    let packed = "data:;base64,H4sIAAAAAAACA1NW1E/KzNMvzuAqLk8syM9T0E3kAgAXtu/2FAAAAA==";
    let new = |path: &str| json!({"path": path, "contents": {"source": packed, "compression": "gzip"}});
    let object = machine_config(&json!([new("/bin/x"), new("/etc/shadow")]), &json!([]), &[]);
    let found = of_answer(None, &object, "us");
    let texts = found.iter().filter_map(|difference| match &difference.edit {
        Edit::Added { after: Shown::Text { lines, .. } } => Some((difference.path.as_str(), lines.join("|"))),
        _ => None,
    });
    let hidden = "(not shown: its path or a line looks like a secret)";
    let expected = [("file /bin/x", "#!/bin/sh|swapon -a"), ("file /etc/shadow", hidden)];
    assert_eq!(texts.collect::<Vec<_>>(), expected.map(|(path, text)| (path, text.to_owned())));
}

#[test]
fn a_local_difference_of_a_machine_config_shows_the_same_files() {
    let before = machine_config(&json!([file("/etc/a", 0o644, "data:,one%0A")]), &json!([]), &[]);
    let after = machine_config(&json!([file("/etc/a", 0o644, "data:,two%0A")]), &json!([]), &[]);
    let expected = expect![[r#"
        ~ file /etc/a
            -one
            +two
    "#]];
    expected.assert_eq(&printed(&of_wanted(Some(&before), &after, &[])));
    check_answer(Some(&before), &after, &expected);
}

#[test]
fn a_file_that_is_kept_by_another_name_or_broken_is_shown_in_some_way() {
    let broken = |files: Value| machine_config(&files, &json!([]), &[]);
    let double = broken(json!([file("/a", 1, "data:,x"), file("/a", 1, "data:,y")]));
    let shown = printed(&of_answer(None, &double, "us"));
    assert!(shown.contains("/a"), "{shown}");
    let strange = broken(json!([file("/a", 1, "data:;base64,%%%")]));
    assert_eq!(
        printed(&of_answer(None, &strange, "us")).lines().last(),
        Some("+ file /a: (0001, fetched from elsewhere)")
    );
    assert!(printed(&of_answer(None, &broken(json!("text")), "us")).contains("text"));
}

#[test]
fn differences_survive_a_file() {
    let before = service(&json!({"type": "A", "text": "a\nb\n", "gone": "password=x"}));
    let after = service(&json!({"type": "B", "text": "a\nc\n", "new": ["x"]}));
    let all = json!({"f:spec": {}});
    let differences = of_answer(Some(&owned(before, &all)), &owned(after, &all), "us");
    let text = serde_json::to_string(&differences).unwrap();
    assert_eq!(serde_json::from_str::<Vec<Difference>>(&text).unwrap(), differences, "{text}");
}

fn arguments(list: &Value) -> Value {
    owned(
        json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig", "metadata": {"name": "m"},
            "spec": {"kernelArguments": list}}),
        &json!({"f:spec": {"f:kernelArguments": {}}}),
    )
}

/// The order of kernel arguments and how often one is given decide what the kernel does.
#[test]
fn a_list_that_gets_another_order_and_another_item_shows_both() {
    let before = arguments(&json!(["hugepagesz=1G", "hugepages=4", "hugepagesz=2M", "hugepages=8"]));
    let after = arguments(&json!(["hugepagesz=1G", "hugepages=8", "hugepagesz=2M", "hugepages=4", "quiet"]));
    let text = printed(&of_answer(Some(&before), &after, "us"));
    assert!(text.contains("hugepages"), "only this is shown: {text}");
    let after = arguments(&json!(["hugepagesz=1G", "hugepages=4", "hugepagesz=2M", "hugepages=4", "quiet"]));
    let before = arguments(&json!(["hugepagesz=1G", "hugepages=4", "hugepagesz=2M"]));
    let text = printed(&of_answer(Some(&before), &after, "us"));
    assert!(text.contains("hugepages"), "only this is shown: {text}");
}

fn with_file(path: &str, text: &str) -> Value {
    let encoded: String = text.bytes().map(|byte| format!("%{byte:02x}")).collect();
    let files = json!([{"path": path, "mode": 384, "contents": {"source": format!("data:,{encoded}")}}]);
    owned(
        json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig", "metadata": {"name": "m"},
            "spec": {"config": {"ignition": {"version": "3.2.0"}, "storage": {"files": files}}}}),
        &json!({"f:spec": {"f:config": {"f:ignition": {"f:version": {}}, "f:storage": {"f:files": {}}}}}),
    )
}

/// a secret anywhere in a line is one, and not only at the beginning of the whole text.
#[test]
fn no_secret_in_a_line_of_a_file_of_a_machine_config_is_shown() {
    for (path, text) in [
        ("/etc/NetworkManager/system-connections/w.nmconnection", "[wifi-security]\npsk=VALUE\n"),
        ("/etc/shadow-", "root:*:1\ncore:$6$salt$VALUE:1\n"),
        ("/etc/x.json", "{\n\"id\": \"eyJhbGciOiJIUzI1NiJ9.VALUE.x\"\n}\n"),
        ("/etc/motd.d/x", "hello\neyJhbGciOiJIUzI1NiJ9.VALUE.x\n"),
        ("/etc/netrc", "machine a login b password VALUE\n"),
        ("/etc/motd", "hello\nhash $y$j9T$VALUE\n"),
    ] {
        let with = |value: &str| with_file(path, &text.replace("VALUE", value));
        let shown = printed(&of_answer(Some(&with("before")), &with("hunter22"), "us"));
        assert!(!shown.contains("hunter22"), "{shown}");
    }
}

#[test]
fn a_difference_is_one_line_with_a_sign() {
    let value = |value: &str| Shown::Value(json!(value));
    let about = |text: &str| Shown::Summary(text.to_owned());
    let lines = ["-a", "+b", "+c", "...", "+d"].map(str::to_owned).to_vec();
    for (edit, expected) in [
        (Edit::Added { after: value("a") }, r#"+ .x: "a""#),
        (Edit::Added { after: about("2 lines") }, "+ .x (2 lines)"),
        (Edit::Added { after: about("") }, "+ .x"),
        (Edit::Added { after: Shown::Redacted }, "+ .x: (redacted)"),
        (Edit::Removed { before: value("a") }, r#"- .x: "a""#),
        (Edit::Removed { before: about("2 lines") }, "- .x (2 lines)"),
        (Edit::Removed { before: Shown::Unknown }, "- .x"),
        (Edit::Changed { before: value("a"), after: about("2 lines") }, r#"~ .x: "a" -> (2 lines)"#),
        (Edit::Changed { before: Shown::Unknown, after: Shown::Redacted }, "~ .x: its value -> (redacted)"),
        (Edit::Changed { before: Shown::Redacted, after: Shown::Redacted }, "~ .x: (redacted)"),
        (Edit::Lines { lines }, "~ .x: 1 lines removed, 3 added"),
    ] {
        let difference = Difference { path: ".x".to_owned(), edit };
        assert_eq!(format!("{} {difference}", difference.edit.sign()), expected);
    }
}

#[test]
fn without_the_server_our_own_label_and_annotations_are_no_difference_either() {
    let map = |stamp: &str, text: &str| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": text},
            "metadata": {"name": "m", "annotations": {"platform.kubevirt.io/budget": stamp}}})
    };
    expect![[r#"
        ~ .data.a: "x" -> "y"
    "#]]
    .assert_eq(&printed(&of_wanted(Some(&map("1", "x")), &map("2", "y"), &[])));
}

#[test]
fn only_a_machine_config_has_files_that_are_decoded() {
    for (api_version, kind) in
        [("machineconfiguration.openshift.io/v1", "MachineConfigNode"), ("example.com/v1", "MachineConfig")]
    {
        let mut other = machine_config(&json!([file("/etc/a", 0o644, "data:,x")]), &json!([]), &[]);
        (other["apiVersion"], other["kind"]) = (json!(api_version), json!(kind));
        let shown = printed(&of_answer(None, &other, "us"));
        assert!(!shown.contains("file /etc/a") && shown.contains("storage"), "{kind}: {shown}");
    }
}

#[test]
fn a_file_that_reads_the_same_differs_only_if_it_is_written_differently() {
    let of = |mode: u32, source: &str| machine_config(&json!([file("/etc/a", mode, source)]), &json!([]), &[]);
    let before = of(0o644, "data:,x");
    check_answer(
        Some(&before),
        &of(0o600, "data:,x"),
        &expect![[r#"
            ~ file /etc/a mode: (0644) -> (0600)
        "#]],
    );
    check_answer(
        Some(&before),
        &of(0o644, "data:;base64,eA=="),
        &expect![[r#"
            ~ file /etc/a: (the same content) -> (encoded or verified differently)
        "#]],
    );
    check_answer(
        Some(&before),
        &of(0o644, "data:,x%00"),
        &expect![[r#"
            ~ file /etc/a: redacted -> (binary, 2 bytes, sha256 14f825b2)
        "#]],
    );
}

#[test]
fn a_text_that_gets_or_loses_a_secret_is_not_shown() {
    let [plain, secret] = ["one=1\n", "password=hunter22\n"];
    for (before, after) in [(plain, secret), (secret, plain)] {
        check_answer(
            Some(&with_file("/etc/a", before)),
            &with_file("/etc/a", after),
            &expect![[r#"
                ~ file /etc/a: redacted -> redacted
            "#]],
        );
        let unit = |text: &str| machine_config(&json!([]), &json!([{"name": "a.service", "contents": text}]), &[]);
        check_answer(
            Some(&unit(before)),
            &unit(after),
            &expect![[r#"
                ~ unit a.service: redacted -> redacted
            "#]],
        );
    }
}

#[test]
fn the_drop_ins_of_a_new_unit_are_counted() {
    let dropins = |count: usize| (0..count).map(|number| json!({"name": number.to_string(), "contents": "x\n"}));
    let unit = |count: usize| json!({"name": format!("{count}.service"), "dropins": dropins(count).collect::<Value>()});
    check_answer(
        None,
        &machine_config(&json!([]), &json!([unit(0), unit(1), unit(2)]), &[]),
        &expect![[r#"
            + .spec: {"config":{"ignition":{"version":"3.2.0"}},"kernelArguments":[]}
            + unit 0.service: ()
            + unit 1.service: (1 drop-in)
            + unit 2.service: (2 drop-ins)
        "#]],
    );
}

#[test]
fn what_an_object_gets_that_had_none_of_it_is_one_difference() {
    let map = |data: Value| {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": data});
        owned(object, &json!({"f:data": {"f:a": {}, "f:b": {}}}))
    };
    let mut before = map(json!({}));
    before.as_object_mut().unwrap().remove("data");
    check_answer(
        Some(&before),
        &map(json!({"a": "1", "b": "2", "theirs": "3"})),
        &expect![[r#"
            + .data: {"a":"1","b":"2"}
        "#]],
    );
}

#[test]
fn a_text_of_one_line_that_gets_a_second_one_is_compared_by_lines() {
    let map = |text: &str| {
        owned(
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}, "data": {"a": text}}),
            &json!({"f:data": {}}),
        )
    };
    for (before, after, expected) in [("a", "a\nb", "+b"), ("a\nb", "a", "-b")] {
        let shown = printed(&of_answer(Some(&map(before)), &map(after), "us"));
        assert_eq!(shown, format!("~ .data.a\n    {expected}\n"));
    }
}

#[test]
fn a_short_list_in_a_large_object_is_one_difference() {
    let wanted = json!({"apiVersion": "v1", "kind": "X", "metadata": {},
        "spec": {"few": ["a", "b"], "named": [{"name": "a"}], "text": "x".repeat(70)}});
    let shown = printed(&of_wanted(None, &wanted, &[])).replace(&"x".repeat(70), "LONG");
    expect![[r#"
        + .spec.few: ["a","b"]
        + .spec.named: [{"name":"a"}]
        + .spec.text: "LONG"
    "#]]
    .assert_eq(&shown);
}

#[test]
fn a_list_is_shown_in_one_line_as_long_as_it_fits() {
    for length in 1..80 {
        let list = json!(["x".repeat(length), "y"]);
        let wanted = json!({"apiVersion": "v1", "kind": "X", "metadata": {}, "list": list});
        let differences = of_wanted(None, &wanted, &[]);
        let is_short = ".list".len() + list.to_string().len() <= 72;
        assert_eq!(differences.len(), if is_short { 1 } else { 2 }, "{length}");
    }
}

/// What a person approves is read here: the text of what is new, and not only how many lines it has.
#[test]
fn as_text_a_difference_has_every_line_of_new_removed_and_changed_texts() {
    let packed = "data:;base64,H4sIAAAAAAACA1NW1E/KzNMvzuAqLk8syM9T0E3kAgAXtu/2FAAAAA==";
    let before = machine_config(
        &json!([file("/etc/a", 0o644, "data:,one%0Atwo%0A")]),
        &json!([{"name": "old.service", "contents": "a\nb\n"}]),
        &[],
    );
    let after = machine_config(
        &json!([
            file("/etc/a", 0o644, "data:,one%0A2%0A"),
            {"path": "/bin/packed", "mode": 0o755, "contents": {"source": packed, "compression": "gzip"}},
            file("/etc/shadow", 0o600, "data:,x%0A"),
        ]),
        &json!([
            {"name": "new.service", "enabled": true, "contents": "[Unit]\nAfter=b\n", "dropins": [{"name": "d", "contents": "y\n"}]},
            {"name": "quiet.service", "contents": "Environment=TOKEN=abc\n"},
        ]),
        &["psi=1"],
    );
    expect![[r#"
        +.spec.kernelArguments[]: "psi=1"
        +file /bin/packed (0755, 2 lines)
        +  #!/bin/sh
        +  swapon -a
         file /etc/a:
        -  two
        +  2
        +file /etc/shadow (0600, 1 line)
        +  (not shown: its path or a line looks like a secret)
        +unit new.service (enabled, 2 lines, 1 drop-in)
        +  [Unit]
        +  After=b
        +  # drop-in d
        +  y
        -unit old.service (2 lines)
        +unit quiet.service (1 line)
        +  (not shown: its path or a line looks like a secret)
    "#]]
    .assert_eq(&super::text(&of_answer(Some(&before), &after, "us")));
    let map = |data: Value| {
        owned(json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {}, "data": data}), &json!({"f:data": {}}))
    };
    let (before, after) = (map(json!({"gone": "a\nb\n", "x": "1"})), map(json!({"new": "c\nd", "x": "2"})));
    expect![[r#"
        -.data.gone (2 lines)
        -  a
        -  b
        +.data.new (2 lines)
        +  c
        +  d
        -.data.x: "1"
        +.data.x: "2"
    "#]]
    .assert_eq(&super::text(&of_answer(Some(&before), &after, "us")));
}
