//! Which job is meant: by the address that GitHub shows, or by an id.

use super::{Line, Report};
use crate::jobs::job::{JobKey, Repository};

/// What was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    /// One job.
    Job(u64),
    /// One request of a scale set.
    Request {
        /// The scale set.
        scale_set: u64,
        /// The request.
        id: u64,
    },
    /// All jobs of a run, or of one attempt of it.
    Run {
        /// The repository.
        repository: Repository,
        /// The id of the run.
        run: u64,
        /// The attempt.
        attempt: Option<u32>,
    },
}

/// Reads an id (`77`), a request (`SCALESET/REQUEST`), or the address of a job or a run as a browser or the REST API has it.
pub fn read(text: &str) -> Option<Question> {
    let text = text.trim().trim_start_matches('#');
    if let Ok(id) = text.parse() {
        return Some(Question::Job(id));
    }
    let Some((_, address)) = text.split_once("://") else {
        let (scale_set, id) = text.split_once('/')?;
        return Some(Question::Request { scale_set: scale_set.parse().ok()?, id: id.parse().ok()? });
    };
    let path = address.split(['?', '#']).next().unwrap_or(address);
    let parts: Vec<&str> = path.split('/').skip(1).filter(|part| !part.is_empty()).collect();
    if let Some(dash) = parts.iter().position(|part| *part == "-") {
        return of_gitlab(parts.get(..dash)?, parts.get(dash + 1..)?);
    }
    let actions = parts.iter().rposition(|part| *part == "actions")?;
    let (before, after) = (parts.get(..actions)?, parts.get(actions + 1..)?);
    match after {
        ["jobs", id] | ["runs", _, "job" | "jobs", id] | ["runs", _, "attempts", _, "job" | "jobs", id] => {
            id.parse().ok().map(Question::Job)
        }
        ["runs", run, rest @ ..] => {
            let [.., owner, name] = before else { return None };
            let attempt = match rest {
                [] => None,
                ["attempts", attempt] => Some(attempt.parse().ok()?),
                _ => return None,
            };
            Some(Question::Run { repository: Repository::new(owner, name), run: run.parse().ok()?, attempt })
        }
        _ => None,
    }
}

/// What an address of GitLab means: the path of a project, and what of it. Before the path may be other parts.
fn of_gitlab(before: &[&str], after: &[&str]) -> Option<Question> {
    match after {
        ["jobs", id, ..] => id.parse().ok().map(Question::Job),
        ["pipelines", id, ..] => {
            let (name, groups) = before.split_last()?;
            let repository = Repository::new(&groups.join("/"), name);
            (!groups.is_empty()).then_some(())?;
            Some(Question::Run { repository, run: id.parse().ok()?, attempt: None })
        }
        _ => None,
    }
}

/// The jobs that are meant. Of a job that was run again with the same id, the last attempt.
pub fn find<'a>(report: &'a Report, question: &Question) -> Vec<&'a Line> {
    let is_meant = |line: &&Line| match (question, &line.key) {
        (Question::Job(id), JobKey::Job { id: found, .. }) => id == found,
        (Question::Request { scale_set, id }, JobKey::Request { scale_set: of, id: found }) => {
            (scale_set, id) == (of, found)
        }
        (Question::Run { repository, run, attempt }, key) => {
            let of = repository.to_string();
            line.run == *run && line.repository == of && attempt.is_none_or(|attempt| key.attempt() == attempt)
        }
        _ => false,
    };
    let mut found: Vec<&Line> = report.jobs.iter().filter(is_meant).collect();
    if matches!(question, Question::Job(_)) {
        found.sort_by_key(|line| std::cmp::Reverse(line.key.attempt()));
        found.truncate(1);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::{Question, read};
    use crate::jobs::job::Repository;

    #[test]
    fn a_job_is_named_by_its_id_or_by_any_address_that_has_it() {
        for text in [
            "77",
            "#77",
            "https://github.com/acme/web/actions/runs/5/job/77",
            "https://github.com/acme/web/actions/runs/5/job/77?pr=3#step:4:1",
            "https://github.com/acme/web/actions/runs/5/attempts/2/job/77",
            "https://api.github.com/repos/acme/web/actions/jobs/77",
            "https://gitlab.com/acme/lab/robot/-/jobs/77",
            "https://ghes.example.org/api/v3/repos/acme/actions/actions/jobs/77",
        ] {
            assert_eq!(read(text), Some(Question::Job(77)), "{text}");
        }
        assert_eq!(read("3/9"), Some(Question::Request { scale_set: 3, id: 9 }));
        let run = |attempt: Option<u32>| {
            let repository = Repository::new("acme", "web");
            Some(Question::Run { repository, run: 5, attempt })
        };
        assert_eq!(read("https://github.com/Acme/web/actions/runs/5"), run(None));
        assert_eq!(read("https://api.github.com/repos/acme/web/actions/runs/5/attempts/2"), run(Some(2)));
        let repository = Repository::new("acme/lab", "robot");
        let pipeline = Question::Run { repository, run: 5, attempt: None };
        assert_eq!(read("https://gitlab.com/Acme/lab/robot/-/pipelines/5"), Some(pipeline));
        for text in
            ["", "seven", "acme/web", "https://github.com/acme/web", "https://github.com/acme/web/actions/runs/x"]
        {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
