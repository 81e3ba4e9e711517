//! Whether the operator's service account has every right of its role.

use super::{Row, Verdict};
use catalog::Catalog;
use change::{Key, Kind};
use cluster::review::{self, Right, has_right};
use cluster::{Server, live};
use protocol::Kinds;
use serde_json::Value;
use std::collections::BTreeSet;
use tokio::task::JoinSet;

const CHECK: &str = "rights";
/// Questions at a time.
const AT_A_TIME: usize = 8;
/// More missing rights are counted.
const SHOWN: usize = 3;

/// One rule of the role, and all that it grants.
struct Rule {
    text: String,
    grants: Vec<Right>,
}

pub(super) async fn rows(server: &Server, kinds: &Kinds, catalog: &Catalog, namespace: &str) -> Vec<Row> {
    let objects = match catalog::role_objects(catalog, namespace) {
        Ok(objects) => objects,
        Err(problems) => {
            return vec![Row::new(CHECK, Verdict::Fail, "there is no role for the asset pack", problems.join("; "))];
        }
    };
    let account =
        Key { kind: Kind::new("v1", "ServiceAccount"), namespace: namespace.into(), name: install::NAME.into() };
    if let Some(served) = kinds.find(&account.kind)
        && let Ok(None) = live::read(server, &served, &account).await
    {
        let found = format!("{account} does not exist");
        return vec![Row::new(
            CHECK,
            Verdict::Warn,
            found,
            "the operator is not installed; virtpilot manifests prints its objects",
        )];
    }
    let user = format!("system:serviceaccount:{namespace}:{}", install::NAME);
    let rules = rules(&objects);
    let questions: BTreeSet<Right> = rules.iter().flat_map(|rule| rule.grants.iter().cloned()).collect();
    // The operator itself may ask only about itself.
    let is_operator = review::user(server).await.is_ok_and(|asker| asker == user);
    match denied(server, (!is_operator).then_some(user), questions).await {
        Ok(denied) => vec![verdict(&rules, &denied)],
        Err(failure) => {
            let remedy = format!("run it as somebody who may create subjectaccessreviews: {failure}");
            vec![Row::new(CHECK, Verdict::Info, "not checked", remedy)]
        }
    }
}

/// The questions to which the answer is no.
async fn denied(
    server: &Server,
    user: Option<String>,
    questions: BTreeSet<Right>,
) -> Result<BTreeSet<Right>, cluster::Failure> {
    let mut denied = BTreeSet::new();
    let mut running = JoinSet::new();
    let mut waiting = questions.into_iter();
    loop {
        while running.len() < AT_A_TIME
            && let Some(question) = waiting.next()
        {
            let (server, user) = (server.clone(), user.clone());
            running.spawn(async move { (has_right(&server, user.as_deref(), &question).await, question) });
        }
        match running.join_next().await {
            None => return Ok(denied),
            Some(Ok((Ok(true), _))) => {}
            Some(Ok((Ok(false), question))) => {
                denied.insert(question);
            }
            Some(Ok((Err(failure), _))) => return Err(failure),
            Some(Err(error)) => return Err(cluster::Failure::Unanswered(error.to_string())),
        }
    }
}

fn verdict(rules: &[Rule], denied: &BTreeSet<Right>) -> Row {
    let is_missing = |rule: &&Rule| rule.grants.iter().any(|grant| denied.contains(grant));
    let missing: Vec<&str> = rules.iter().filter(is_missing).map(|rule| rule.text.as_str()).collect();
    let found = format!("{} of {} rules granted", rules.len() - missing.len(), rules.len());
    if missing.is_empty() {
        return Row::ok(CHECK, found);
    }
    let more = missing.len().saturating_sub(SHOWN);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    let shown: Vec<&str> = missing.into_iter().take(SHOWN).collect();
    let remedy = format!("missing: {}{more}; run \"virtpilot rbac | kubectl apply --filename -\"", shown.join("; "));
    Row::new(CHECK, Verdict::Fail, found, remedy)
}

/// The rules of all roles among these objects.
fn rules(objects: &[Value]) -> Vec<Rule> {
    let mut all = Vec::new();
    for role in objects.iter().filter(|object| ["ClusterRole", "Role"].iter().any(|kind| object["kind"] == *kind)) {
        let namespace = role["metadata"]["namespace"].as_str().unwrap_or_default();
        for rule in role["rules"].as_array().into_iter().flatten() {
            all.push(read_rule(rule, namespace));
        }
    }
    all
}

fn read_rule(rule: &Value, namespace: &str) -> Rule {
    let texts = |field: &str| -> Vec<String> {
        rule[field].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let (groups, resources, verbs, names) =
        (texts("apiGroups"), texts("resources"), texts("verbs"), texts("resourceNames"));
    let mut grants = Vec::new();
    let every = vec![String::new()];
    for group in &groups {
        for resource in &resources {
            for verb in &verbs {
                for name in if names.is_empty() { &every } else { &names } {
                    let (group, resource, verb) = (group.clone(), resource.clone(), verb.clone());
                    grants.push(Right { group, resource, verb, namespace: namespace.to_owned(), name: name.clone() });
                }
            }
        }
    }
    let group = groups.join(",");
    let of_group = if group.is_empty() { String::new() } else { format!(".{group}") };
    let of_names = match names.as_slice() {
        [] => String::new(),
        [one] => format!(" {one}"),
        [first, rest @ ..] => format!(" {first} and {} more", rest.len()),
    };
    let within = if namespace.is_empty() { String::new() } else { format!(" in {namespace}") };
    Rule { text: format!("{} {}{of_group}{of_names}{within}", verbs.join(","), resources.join(",")), grants }
}

#[cfg(test)]
mod tests {
    use super::{Verdict, rules, verdict};
    use serde_json::json;
    use std::collections::BTreeSet;

    #[test]
    fn a_rule_with_one_missing_right_is_named_with_the_command_that_grants_it() {
        let rule = json!({"apiGroups": ["g.io"], "resources": ["things"], "verbs": ["get", "patch"], "resourceNames": ["a", "b"]});
        let reads = json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]});
        let roles = [
            json!({"kind": "ClusterRole", "metadata": {"name": "x"}, "rules": [rule]}),
            json!({"kind": "Role", "metadata": {"name": "x", "namespace": "n"}, "rules": [reads]}),
            json!({"kind": "ServiceAccount", "metadata": {"name": "x"}}),
        ];
        let all = rules(&roles);
        assert_eq!(all.iter().map(|rule| rule.grants.len()).collect::<Vec<_>>(), [4, 1]);
        assert_eq!(verdict(&all, &BTreeSet::new()).found, "2 of 2 rules granted");
        let denied = BTreeSet::from([all[0].grants[3].clone()]);
        let row = verdict(&all, &denied);
        assert_eq!((row.verdict, row.found.as_str()), (Verdict::Fail, "1 of 2 rules granted"));
        assert!(
            row.remedy.starts_with("missing: get,patch things.g.io a and 1 more; run \"virtpilot rbac"),
            "{}",
            row.remedy
        );
        assert_eq!(all[1].text, "get pods in n");
    }
}
