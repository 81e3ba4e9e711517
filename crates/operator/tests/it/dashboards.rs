//! Dashboards and alerts query metrics that somebody exports, and the panels of a dashboard are placed.

use crate::alerts::{promtool, rules};
use crate::catalogue::all_of;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The metrics that may be queried, and who exports them.
const METRICS: &str = include_str!("../../../../docs/reference/metrics.md");
/// The guides of the fleet.
const GUIDES: [(&str, &str); 2] = [
    ("docs/fleet.md", include_str!("../../../../docs/fleet.md")),
    ("docs/github-runners.md", include_str!("../../../../docs/github-runners.md")),
];
/// Words that labels in parentheses follow.
const GROUPING: [&str; 6] = ["by", "without", "on", "ignoring", "group_left", "group_right"];
const OPERATORS: [&str; 5] = ["and", "or", "unless", "bool", "offset"];
const PANELS: [&str; 3] = ["TimeSeriesChart", "StatChart", "Table"];

/// The series of the metrics in the tables; a histogram has three.
fn exported() -> BTreeMap<String, &'static str> {
    let mut series = BTreeMap::new();
    for section in METRICS.split("\n## ").skip(1) {
        assert!(section.contains("\nSource: "), "nobody is named as source of these metrics:\n{section}");
        for line in section.lines() {
            let Some((name, rest)) = line.strip_prefix("| `").and_then(|line| line.split_once("` | ")) else {
                continue;
            };
            let suffixes = if rest.starts_with("histogram ") { &["_bucket", "_count", "_sum"][..] } else { &[""] };
            series.extend(suffixes.iter().map(|suffix| (format!("{name}{suffix}"), name)));
        }
    }
    series
}

/// The queries of a guide.
fn documented(guide: &str) -> Vec<&str> {
    let blocks = guide.split("```promql\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let queries: Vec<&str> =
        blocks.flat_map(str::lines).filter(|line| !line.is_empty() && !line.starts_with('#')).collect();
    assert!(queries.len() > 2, "{queries:?}");
    queries
}

fn is_of_name(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_' || character == ':'
}

/// Words, numbers and signs of an expression, without texts, selectors of labels, and ranges.
fn tokens(query: &str) -> Vec<&str> {
    let (mut tokens, mut rest) = (Vec::new(), query);
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '"' | '\'' => rest[1..].find(first).unwrap() + 2,
            // No label of ours has a brace in its value.
            '{' => rest.find('}').unwrap() + 1,
            '[' => rest.find(']').unwrap() + 1,
            _ if is_of_name(first) => rest.find(|next| !is_of_name(next) && next != '.').unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        let is_nameless = first == '{' && !tokens.last().is_some_and(|last: &&str| last.ends_with(is_of_name));
        if is_nameless || !(first.is_whitespace() || "\"'{[".contains(first)) {
            tokens.push(&rest[..length]);
        }
        rest = &rest[length..];
    }
    tokens
}

/// The metrics that an expression selects; a selector without a name is given as it is.
fn selected(query: &str) -> BTreeSet<&str> {
    let mut tokens = tokens(query);
    while let Some(start) = tokens.windows(2).position(|pair| GROUPING.contains(&pair[0]) && pair[1] == "(") {
        let end = start + tokens[start..].iter().position(|token| *token == ")").unwrap();
        tokens.drain(start..=end);
    }
    let is_metric = |(index, token): &(usize, &&str)| {
        let is_word = token.starts_with(|first: char| is_of_name(first) && !first.is_ascii_digit() || first == '{');
        is_word && !OPERATORS.contains(*token) && tokens.get(index + 1) != Some(&"(")
    };
    tokens.iter().enumerate().filter(is_metric).map(|(_, token)| *token).collect()
}

fn list<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    value.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

/// What is wrong, and the queries without variables.
#[derive(Default)]
struct Checked {
    faults: Vec<String>,
    queries: Vec<(String, String)>,
}

impl Checked {
    fn fault(&mut self, place: &str, fault: impl std::fmt::Display) {
        self.faults.push(format!("{place}: {fault}"));
    }

    fn dashboard(&mut self, object: &Value) {
        let name = text(object, "/metadata/name");
        let config = &object["spec"]["config"];
        let (mut values, mut used) = (BTreeMap::new(), BTreeSet::new());
        for variable in list(config, "/variables") {
            match text(variable, "/spec/plugin/kind") {
                "StaticListVariable" => {
                    values.insert(text(variable, "/spec/name"), text(variable, "/spec/plugin/spec/values/0"));
                }
                "PrometheusLabelValuesVariable" => {
                    for matcher in list(variable, "/spec/plugin/spec/matchers") {
                        self.query(name, matcher.as_str().unwrap(), &values, &mut used);
                    }
                    values.insert(text(variable, "/spec/name"), ".*");
                }
                kind => self.fault(name, format_args!("unknown kind of variable {kind:?}")),
            }
        }
        for (id, panel) in config["panels"].as_object().unwrap() {
            let place = format!("{name}: {id}");
            if !PANELS.contains(&text(panel, "/spec/plugin/kind")) {
                self.fault(&place, format_args!("unknown kind of panel {}", panel["spec"]["plugin"]["kind"]));
            }
            if list(panel, "/spec/queries").next().is_none() {
                self.fault(&place, "no query");
            }
            for query in list(panel, "/spec/queries") {
                let plugin = &query["spec"]["plugin"];
                let datasource = &plugin["spec"]["datasource"];
                let is_prometheus =
                    datasource["kind"] == "PrometheusDatasource" && !text(datasource, "/name").is_empty();
                if plugin["kind"] != "PrometheusTimeSeriesQuery" || !is_prometheus {
                    self.fault(&place, "not a query of a named Prometheus datasource");
                }
                self.query(&place, text(plugin, "/spec/query"), &values, &mut used);
            }
        }
        for variable in values.keys().filter(|variable| !used.contains(**variable)) {
            self.fault(name, format_args!("the variable {variable} is not used"));
        }
        self.layout(name, config);
    }

    /// Replaces variables; one name may be the start of another.
    fn query(&mut self, place: &str, query: &str, values: &BTreeMap<&str, &str>, used: &mut BTreeSet<String>) {
        let mut parts = query.split('$');
        let mut replaced = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let end = part.find(|next: char| !next.is_ascii_alphanumeric() && next != '_').unwrap_or(part.len());
            match values.get(&part[..end]) {
                Some(value) => replaced.push_str(value),
                None => self.fault(place, format_args!("the variable ${} is not defined", &part[..end])),
            }
            used.insert(part[..end].to_owned());
            replaced.push_str(&part[end..]);
        }
        self.queries.push((place.to_owned(), replaced));
    }

    fn layout(&mut self, name: &str, config: &Value) {
        let panels = config["panels"].as_object().unwrap();
        let mut placed: Vec<&str> = Vec::new();
        for layout in list(config, "/layouts") {
            let mut taken: Vec<[i64; 4]> = Vec::new();
            for item in list(layout, "/spec/items") {
                let panel = text(item, "/content/$ref").trim_start_matches("#/spec/panels/");
                placed.push(panel);
                let [x, y, width, height] = ["x", "y", "width", "height"].map(|key| item[key].as_i64().unwrap_or(0));
                if x < 0 || width < 1 || height < 1 || x + width > 24 {
                    self.fault(name, format_args!("{panel} is outside of the grid"));
                }
                let overlaps = |[a, b, w, h]: &[i64; 4]| x < a + w && *a < x + width && y < b + h && *b < y + height;
                if taken.iter().any(overlaps) {
                    self.fault(name, format_args!("{panel} overlaps another panel"));
                }
                taken.push([x, y, width, height]);
            }
        }
        placed.sort_unstable();
        let mut expected: Vec<&str> = panels.keys().map(String::as_str).collect();
        expected.sort_unstable();
        if placed != expected {
            self.fault(name, format_args!("panels are {expected:?}, and placed are {placed:?}"));
        }
    }
}

#[tokio::test]
async fn dashboards_and_alerts_query_only_metrics_that_somebody_exports() {
    let mut checked = Checked::default();
    let mut dashboards = all_of("PersesDashboard");
    assert_eq!(dashboards.len(), 3, "dashboards");
    dashboards.push(install::fleet_dashboard(install::FLEET_NAMESPACE));
    dashboards.push(install::jobs_dashboard(install::FLEET_NAMESPACE));
    for dashboard in &dashboards {
        checked.dashboard(dashboard);
    }
    for object in rules() {
        for rule in list(&object, "/spec/groups").flat_map(|group| list(group, "/rules")) {
            checked.queries.push((text(rule, "/alert").to_owned(), text(rule, "/expr").to_owned()));
        }
    }
    for (guide, text) in GUIDES {
        checked.queries.extend(documented(text).into_iter().map(|query| (guide.to_owned(), query.to_owned())));
    }
    let Checked { mut faults, queries } = checked;
    let exported = exported();
    let mut queried = BTreeSet::new();
    for (place, query) in &queries {
        for series in selected(query) {
            match exported.get(series) {
                Some(metric) => drop(queried.insert(*metric)),
                None => faults.push(format!("{place}: nobody exports {series}")),
            }
        }
    }
    let unused = exported.values().filter(|metric| !queried.contains(**metric)).collect::<BTreeSet<_>>();
    faults.extend(unused.into_iter().map(|metric| format!("{metric} is listed, and nobody queries it")));
    assert!(faults.is_empty(), "{}", faults.join("\n"));

    // promtool checks the syntax of rules, so every query becomes one.
    let rules = queries
        .iter()
        .enumerate()
        .map(|(index, (_, query))| json!({"record": format!("query:{index}"), "expr": query}));
    let groups = json!({"groups": [{"name": "queries", "rules": rules.collect::<Vec<_>>()}]});
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("queries.yaml"), groups.to_string()).unwrap();
    promtool(folder.path(), &["check", "rules"], &["queries.yaml".to_owned()]).await;
}

#[test]
fn the_metrics_of_an_expression_are_found() {
    for (query, expected) in [
        ("up", "up"),
        ("sum by (a, b) (rate(x_total{le=\"0.1\"}[5m])) / count(y) by (c) > 0.5", "x_total y"),
        ("a * on (node) group_left (role) b:c:5m{role=~\"x|y\"} unless z", "a b:c:5m z"),
        ("time() - (seconds > bool 0) > 1e3", "seconds"),
        ("absent({job=\"x\"})", "{job=\"x\"}"),
        ("label_replace(m, \"a\", \"$1\", \"b\", \"(n)\") offset 5m", "m"),
    ] {
        assert_eq!(selected(query).into_iter().collect::<Vec<_>>().join(" "), expected, "{query}");
    }
}
