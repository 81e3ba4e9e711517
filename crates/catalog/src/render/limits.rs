//! Tests that hostile templates and documents are stopped.

use super::render;
use super::tests::summary;
use crate::cluster::facts::Facts;
use crate::pack::test_pack::of_template;

fn rendered(text: &str) -> String {
    let catalog = of_template(text, "");
    summary(&render(&catalog, &catalog.assets[0], &Facts::default()))
}

fn check(text: &str, expected: &str) {
    let summary = rendered(text);
    assert!(summary.contains(expected), "{text}\n{summary}");
}

#[test]
fn a_hostile_template_is_stopped() {
    let long = "it produces a text of more than 10485760 bytes";
    let much = "it produces more than 67108864 bytes of values";
    let steps = "it takes more than 500000 steps";
    let deep = "nest deeper than 100";
    check("{{ repeat 9223372036854775807 \"ab\" }}", long);
    check("{{ range 1000000000000 }}{{ end }}", steps);
    check("{{ range 100000 }}{{ repeat 1000 \"x\" }}{{ end }}", long);
    check("{{ range 100000 }}{{ $_ := repeat 1000000 \"x\" }}{{ end }}", much);
    check("{{ $x := repeat 5000000 \"x\" }}{{ range 100 }}{{ $_ := trim $x }}{{ end }}", much);
    check("{{ $x := \"ab\" }}{{ range 60 }}{{ $x = print $x $x }}{{ end }}", long);
    check("{{ $x := \"ab\" }}{{ range 60 }}{{ $x = printf \"%s%s\" $x $x }}{{ end }}", long);
    check("{{ $x := \"ab\" }}{{ range 60 }}{{ $x = replace \"a\" $x $x }}{{ end }}", long);
    check("{{ $x := list 1 }}{{ range 60 }}{{ $x = concat $x $x }}{{ end }}", much);
    check("{{ $x := list 1 }}{{ range 60 }}{{ $x = list $x $x }}{{ end }}{{ $x }}", steps);
    check("{{ $x := list 1 }}{{ range 60 }}{{ $x = list $x $x }}{{ end }}{{ toJson $x }}", steps);
    check("{{ $x := list 1 }}{{ range 60 }}{{ $x = list $x $x }}{{ end }}{{ toYaml $x }}", long);
    check("{{ $x := list 1 }}{{ range 60 }}{{ $x = list $x $x }}{{ end }}{{ printf \"%v\" $x }}", steps);
    check("{{ $x := list 1 }}{{ range 60 }}{{ $x = list $x $x }}{{ end }}{{ has $x (list $x) }}", steps);
    check("{{ $x := dict }}{{ range 60 }}{{ $x = dict \"a\" $x \"b\" $x }}{{ end }}{{ set (dict) \"k\" $x }}", steps);
    check("{{ $x := list }}{{ range 200 }}{{ $x = list $x }}{{ end }}{{ toJson $x }}", "nests deeper than 100");
    check("{{ $x := list }}{{ range 100000 }}{{ $x = list $x }}{{ end }}{{ len $x }}", "not to an object");
    check("{{ $d := dict }}{{ $_ := set $d \"d\" (list $d) }}", "a map cannot contain itself");
    check("{{ indent 100000000 (repeat 1000 \"\\n\") }}", long);
    check("{{ splitList \"\" (repeat 10000000 \"x\") | len }}", much);
    check("{{ join (repeat 1000000 \"x\") (splitList \"\" (repeat 1000 \"x\")) }}", long);
    check("{{ wrapWith 1 (repeat 1000 \"x\") (repeat 100000 \"x\") }}", long);
    check("{{ printf (repeat 1000 \"%[1]65535d\") 1 }}", long);
    check("{{ printf (repeat 200 \"%1d\") 1 }}", long);
    check("{{ printf (repeat 200 \"%*d\") 1 1 }}", long);
    check("{{ fromJson (print \"[\" (repeat 5000000 \"1,\") \"1]\") }}", much);
    check("{{ fromJson (repeat 9000000 \" \") }}", much);
    check("{{ fromYaml (repeat 9000000 \" \") }}", much);
    // Decoding is slow, so most of the budget is spent before.
    let spent = "{{ range 30 }}{{ $_ := repeat 1000000 \"x\" }}{{ end }}{{ $x := repeat 400000 \"//79\" }}";
    check(&format!("{spent}{{{{ range 5 }}}}{{{{ $_ := b64dec $x }}}}{{{{ end }}}}"), much);
    check(spent, "empty");
    check("{{ $x := list }}{{ range 200 }}{{ $x = list $x }}{{ end }}{{ toYaml $x }}", "nests deeper than 100");
    check("{{ $x := dict }}{{ range 200 }}{{ $x = dict \"a\" $x }}{{ end }}{{ toYaml $x }}", "nests deeper than 100");
    check("{{ define \"t\" }}{{ template \"t\" }}{{ end }}{{ template \"t\" }}", deep);
    let doubling =
        "{{ define \"t\" }}{{ if . }}{{ template \"t\" (rest .) }}{{ template \"t\" (rest .) }}{{ end }}{{ end }}";
    check(&format!("{doubling}{{{{ template \"t\" (splitList \"\" (repeat 40 \"x\")) }}}}"), steps);
    // Go's order of these keys contradicts itself: a1 is before a01, a01 before a0b, and a0b before a1.
    let keys = "a0 a00 a01 a1 a10 a100 a1b a010 a0b a9 a09 a90 a11 a1- a-1 a. a a1a a10a a2a 0 00 01 10 1 x100y x10y x1y x1 x01y x001 -1 -2 _ a_";
    let entries: Vec<String> = keys.split(' ').map(|key| format!("{key:?} 1")).collect();
    check(&format!("{{{{ toYaml (dict {}) }}}}", entries.join(" ")), "without apiVersion");
    let parentheses = format!("{{{{ {}1{} }}}}", "(".repeat(90), ")".repeat(90));
    check(&parentheses, "it renders to a number");
    let blocks = format!("{}{}", "{{ if true }}".repeat(90), "{{ end }}".repeat(90));
    check(&blocks, "empty");
}

#[test]
fn a_large_template_is_rendered() {
    for template in [
        "{{ printf (repeat 200 \"%d\") 1 | len }}",
        "{{ fromJson (print \"[\" (repeat 200000 \"1,\") \"1]\") | len }}",
        "{{ fromYaml (repeat 200000 \"#\") | len }}",
        "{{ wrap 1000 (repeat 100000 \"x \") | len }}",
    ] {
        check(template, "it renders to a number");
    }
}

#[test]
fn values_that_cannot_be_compared_are_named() {
    check("{{ eq 1 \"a\" }}", "an int and a string cannot be compared");
}

#[test]
fn a_hostile_document_is_stopped() {
    let mut bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n".to_owned();
    for level in 1..8 {
        let aliases = vec![format!("*a{}", level - 1); 9].join(",");
        bomb.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    check(&bomb, "of its output: alias");
    check(&format!("{{{{ fromYaml {bomb:?} }}}}"), "fromYaml: line");
    // Without optimisation the parser uses 20 kB of stack per level.
    let deep = format!("a: {}1{}", "[".repeat(150), "]".repeat(150));
    let reading = std::thread::Builder::new().stack_size(16 * 1024 * 1024);
    let summary = reading.spawn(move || rendered(&deep)).unwrap().join().unwrap();
    assert!(summary.contains("budget breached: Depth"), "{summary}");
}
