"""Lets python-gitlab do with a GitLab what a fleet does with a group and a project, and prints each step."""

import os

import gitlab


def refused(action):
    try:
        action()
        return "not refused"
    except gitlab.GitlabError as error:
        return f"{error.response_code} {error.error_message}"


def connect(token):
    return gitlab.Gitlab(os.environ["GITLAB_ADDRESS"], private_token=token, ssl_verify=os.environ["GITLAB_CA"])


def story(api, runner_type, where, owner, jobs_of):
    """Registers a runner, looks at it and at the open jobs, and removes it."""
    new = api.user.runners.create(
        {"runner_type": runner_type, "description": f"from-python-{runner_type}", "tag_list": ["pve", "linux"], "run_untagged": False, **where}
    )
    assert new.token.startswith("glrt-"), new
    listed = owner.runners.list(type=runner_type, iterator=True, per_page=1)
    names = {runner.description for runner in listed}
    runner = api.runners.get(new.id)
    print(f"{runner_type}: {runner.status}, tags {','.join(runner.tag_list)}, listed {runner.description in names}")
    api.runners.update(new.id, {"paused": True})
    print(f"{runner_type}: paused {api.runners.get(new.id).paused}, {len(runner.jobs.list(get_all=True))} jobs")
    open_jobs = jobs_of.jobs.list(
        scope=["pending", "running"], iterator=True, pagination="keyset", order_by="id", sort="desc", per_page=2
    )
    ids = [job.id for job in open_jobs]
    job = jobs_of.jobs.get(ids[0])
    print(f"{runner_type}: {len(ids)} open jobs, the last one {job.status} with tags {','.join(job.tag_list)}")
    runner.delete()
    print(f"{runner_type}: removed, then {refused(lambda: api.runners.get(new.id))}")


api = connect(os.environ["GITLAB_TOKEN"])
api.auth()
token = api.personal_access_tokens.get("self")
print(f"version {api.version()[0]}, {api.user.username} with {','.join(token.scopes)} until {token.expires_at}")
group = api.groups.get("acme")
projects = group.projects.list(include_subgroups=True, archived=False, iterator=True, per_page=1)
print(f"projects {','.join(sorted(project.path_with_namespace for project in projects))}")
print(f"access level {group.members_all.get(api.user.id).access_level}")
shop = api.projects.get("acme/shop")
story(api, "group_type", {"group_id": group.id}, group, shop)
story(api, "project_type", {"project_id": shop.id, "locked": True}, shop, shop)
print(f"hidden: {refused(lambda: api.projects.get('other/secret'))}")
print(f"missing: {refused(lambda: shop.jobs.get(1))}")
print(f"instance: {refused(lambda: api.user.runners.create({'runner_type': 'instance_type'}))}")
print(f"all: {refused(lambda: api.runners_all.list(get_all=True))}")
reader = connect(os.environ["GITLAB_READER_TOKEN"])
reader.auth()
print(f"scope: {refused(lambda: reader.user.runners.create({'runner_type': 'group_type', 'group_id': group.id}))}")
print(f"wrong: {refused(connect('glpat-wrong').auth)}")
# It would wait otherwise, as it is asked to.
ask = lambda: api.http_get("/user", obey_rate_limit=False)
print(f"limit: {refused(lambda: [ask() for _ in range(200)])}")
