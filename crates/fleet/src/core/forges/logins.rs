//! Whose login is used for what: each one sees other repositories, and some do not work.

use super::Forge;
use crate::core::Core;
use crate::forge::RepositoryName;
use crate::jobs::demand::Scope;
use crate::jobs::job::Repository;
use crate::jobs::settings::Settings;
use crate::object::Name;
use std::collections::BTreeSet;

impl Core {
    /// The pool whose connection is used for an owner or a scope: one that works, if there is any.
    pub(super) fn connection(&self, api: &str, is_of: impl Fn(&Settings) -> bool) -> Option<Name> {
        let all = self.ci.forges.iter().filter(|(_, forge)| {
            forge.settings.as_ref().is_ok_and(|settings| settings.address.api == api && is_of(settings))
        });
        all.min_by_key(|(name, forge)| (!forge.is_connected(), *name)).map(|(name, _)| name.clone())
    }

    /// The pool whose connection is used for a runner: that of its claim, unless that one is of another scope by now.
    pub(super) fn login_for(&self, api: &str, scope: &Scope, claim: Option<&Name>) -> Option<Name> {
        let own = claim.and_then(|claim| self.pool_of(claim)).map(|(pool, _)| pool);
        let is_of = |settings: &Settings| settings.address.api == api && settings.scope == *scope;
        let settings = own.as_ref().and_then(|pool| self.ci.forges.get(pool)?.settings.as_ref().ok());
        match settings.is_some_and(is_of) {
            true => own,
            false => self.connection(api, is_of),
        }
    }

    /// Who lists the jobs of an owner, and of which repositories: each login sees others, and pools with the same one list together.
    pub(super) fn listers(&self, api: &str, owner: &str) -> Vec<(Name, Option<BTreeSet<RepositoryName>>)> {
        let mut logins: Vec<Vec<(&Name, &Forge, &Settings)>> = Vec::new();
        for (name, forge) in &self.ci.forges {
            let Ok(settings) = &forge.settings else { continue };
            if settings.address.api != api || settings.scope.owner != owner || !settings.polls() {
                continue;
            }
            let is_same = |login: &&mut Vec<(&Name, &Forge, &Settings)>| {
                login.iter().all(|(one, _, known)| {
                    one.namespace == name.namespace
                        && known.scope == settings.scope
                        && known.github.credentials == settings.github.credentials
                })
            };
            match logins.iter_mut().find(is_same) {
                Some(login) => login.push((name, forge, settings)),
                None => logins.push(vec![(name, forge, settings)]),
            }
        }
        let is_connected = |login: &Vec<(&Name, &Forge, &Settings)>| login.iter().any(|found| found.1.is_connected());
        match logins.iter().any(is_connected) {
            true => logins.retain(is_connected),
            false => logins.truncate(1),
        }
        let lister = |login: Vec<(&Name, &Forge, &Settings)>| {
            let pool = login.iter().min_by_key(|(name, forge, _)| (!forge.is_connected(), *name))?.0.clone();
            let name = |name: String| RepositoryName { owner: owner.to_owned(), name };
            let named = login.iter().map(|(_, _, settings)| settings.repositories());
            let all: Option<Vec<BTreeSet<String>>> = named.collect();
            Some((pool, all.map(|all| all.into_iter().flatten().map(name).collect())))
        };
        logins.into_iter().filter_map(lister).collect()
    }

    /// Who looks up a job of a repository: one that has seen the repository, and another one after each failure, since not every login sees
    /// every repository.
    pub(super) fn viewer(&self, api: &str, repository: &Repository) -> Option<Name> {
        let all = self.ci.forges.iter().filter_map(|(name, forge)| Some((name, forge, forge.settings.as_ref().ok()?)));
        let rank = |forge: &Forge, settings: &Settings| {
            (!forge.is_connected(), !forge.read.contains(repository), settings.scope.is_enterprise())
        };
        let mut found: Vec<_> = all
            .filter(|(_, _, settings)| settings.address.api == api && settings.covers(repository))
            .map(|(name, forge, settings)| (rank(forge, settings), name))
            .collect();
        found.sort();
        let best = found.first()?.0;
        found.retain(|(rank, _)| *rank == best);
        found.get(self.ci.failed_look_ups % found.len()).map(|(_, name)| (*name).clone())
    }
}
