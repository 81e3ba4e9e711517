// Lets octokit do with a GitHub what a fleet does, once as an App and once with a personal token, and prints each step.
// With the argument `routes` it prints all calls that octokit knows instead.
import { readFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import { createAppAuth } from '@octokit/auth-app'
import { throttling } from '@octokit/plugin-throttling'
import { Octokit } from '@octokit/rest'
import { createNodeMiddleware, Webhooks } from '@octokit/webhooks'

const { GITHUB_ADDRESS, GITHUB_APP, GITHUB_INSTALLATION, GITHUB_KEY, GITHUB_TOKEN, GITHUB_RUN } = process.env
const secret = 'a secret of the hook'
const quiet = { debug() {}, info() {}, warn() {}, error() {} }

if (process.argv[2] === 'routes') {
  for (const group of Object.values(new Octokit().rest)) {
    for (const call of Object.values(group)) {
      const { method, url } = call.endpoint.DEFAULTS
      console.log(method, url)
    }
  }
} else {
  const privateKey = readFileSync(GITHUB_KEY, 'utf8')
  const auth = { appId: GITHUB_APP, privateKey, installationId: GITHUB_INSTALLATION }
  // An enterprise server is asked below /api/v3, github.com is not.
  const app = new Octokit({ authStrategy: createAppAuth, auth, baseUrl: `${GITHUB_ADDRESS}/api/v3`, log: quiet })
  const person = new Octokit({ auth: GITHUB_TOKEN, baseUrl: GITHUB_ADDRESS, log: quiet })
  console.log(`app: ${(await app.rest.apps.getAuthenticated()).data.slug}`)
  const installation = await app.rest.apps.getOrgInstallation({ org: 'acme' })
  console.log(`app: installed ${installation.data.id === Number(GITHUB_INSTALLATION)}`)
  await story('app', app)
  await story('person', person)
  await limits()
}

async function story(login, octokit) {
  const { actions, orgs, rateLimit } = octokit.rest
  const org = 'acme'
  const hooks = await receive()
  const hook = (
    await orgs.createWebhook({ org, name: 'web', config: { url: hooks.url, content_type: 'json', secret }, events: ['workflow_job'] })
  ).data
  await hooks.wait('ping')
  const groups = await octokit.request('GET /orgs/{org}/actions/runner-groups', { org })
  const runner_group_id = groups.data.runner_groups.find((group) => group.default).id
  const create = (name) => actions.generateRunnerJitconfigForOrg({ org, name, runner_group_id, labels: ['self-hosted', 'pve'] })
  const made = []
  for (let number = 0; number < 5; number++) made.push((await create(`${login}-${number}`)).data)
  const runners = await octokit.paginate(actions.listSelfHostedRunnersForOrg, { org, per_page: 2 })
  console.log(`${login}: ${runners.length} runners, ${runners[0].status}, labels ${runners[0].labels.map((label) => label.name)}`)
  console.log(`${login}: exists: ${await refused(() => create(`${login}-0`))}`)
  console.log(`${login}: wrong: ${await refused(() => create(''))}`)
  const list = await actions.listSelfHostedRunnersForOrg({ org })
  const headers = { 'if-none-match': list.headers.etag }
  console.log(`${login}: known: ${await refused(() => actions.listSelfHostedRunnersForOrg({ org, headers }))}`)
  const { remaining, used } = (await rateLimit.get()).data.resources.core
  console.log(`${login}: budget ${remaining + used}`)
  const token = (await actions.createRegistrationTokenForOrg({ org })).data
  console.log(`${login}: registration token ${token.token.length > 0 && new Date(token.expires_at) > new Date()}`)

  // A job that nobody takes, until a machine starts with its JIT config.
  const run = { owner: 'acme', repo: 'shop', run_id: Number(GITHUB_RUN) }
  await actions.reRunWorkflow(run)
  const queued = await hooks.wait('queued')
  const waiting = (await actions.listWorkflowRunsForRepo({ ...run, status: 'queued' })).data.workflow_runs
  const jobs = (await actions.listJobsForWorkflowRun(run)).data.jobs
  console.log(`${login}: ${waiting.length} run queued, job ${jobs[0].id === queued.workflow_job.id}, ${queued.workflow_job.labels}`)
  await machine('POST', '', { jit: made[0].encoded_jit_config })
  const started = await hooks.wait('in_progress')
  const { id, name } = made[0].runner
  console.log(`${login}: started on ${started.workflow_job.runner_name === name}`)
  console.log(`${login}: busy: ${await refused(() => actions.deleteSelfHostedRunnerFromOrg({ org, runner_id: id }))}`)
  await machine('POST', `/${id}/finished`, { conclusion: 'failure' })

  // The webhook of its end is lost, and asked for again.
  const failed = await until(async () => {
    const found = await orgs.listWebhookDeliveries({ org, hook_id: hook.id, status: 'failure' })
    return found.data[0]
  })
  await orgs.redeliverWebhookDelivery({ org, hook_id: hook.id, delivery_id: failed.id })
  const ended = await hooks.wait('completed')
  console.log(`${login}: redelivered ${ended.workflow_job.conclusion} of attempt ${ended.workflow_job.run_attempt > 1}`)
  await until(async () => (await actions.listSelfHostedRunnersForOrg({ org })).data.total_count === 4)
  console.log(`${login}: gone: ${await refused(() => actions.getSelfHostedRunnerForOrg({ org, runner_id: id }))}`)
  for (const { runner } of made.slice(1)) await actions.deleteSelfHostedRunnerFromOrg({ org, runner_id: runner.id })
  await orgs.deleteWebhook({ org, hook_id: hook.id })
  await hooks.close()
  console.log(`${login}: ${hooks.bad} bad signatures, done`)
}

// A client that is refused by a secondary limit waits as long as it is told to.
async function limits() {
  const Throttled = Octokit.plugin(throttling)
  const waits = []
  const remember = (kind) => (seconds) => {
    waits.push(`${kind} ${seconds} s`)
    return true
  }
  const throttle = { onRateLimit: remember('primary'), onSecondaryRateLimit: remember('secondary') }
  const octokit = new Throttled({ auth: GITHUB_TOKEN, baseUrl: `${GITHUB_ADDRESS}/api/v3`, log: quiet, throttle })
  const found = await octokit.rest.actions.listRunnerApplicationsForOrg({ org: 'acme' })
  console.log(`limits: ${waits}, then ${found.status}`)
}

// Receives webhooks and verifies their signatures.
async function receive() {
  const webhooks = new Webhooks({ secret, log: quiet })
  const received = []
  const hooks = { bad: 0 }
  webhooks.onAny(({ name, payload }) => received.push({ kind: payload.action ?? name, payload }))
  webhooks.onError(() => hooks.bad++)
  const server = createServer(createNodeMiddleware(webhooks, { path: '/hook' }))
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  hooks.url = `http://127.0.0.1:${server.address().port}/hook`
  hooks.wait = async (kind) => (await until(async () => received.find((event) => event.kind === kind))).payload
  hooks.close = () => new Promise((resolve) => server.close(resolve))
  return hooks
}

async function machine(method, path, body) {
  const response = await fetch(`${GITHUB_ADDRESS}/_stand-in/runners${path}`, { method, body: JSON.stringify(body) })
  if (!response.ok) throw Error(`machine: ${response.status} ${await response.text()}`)
}

async function until(ask) {
  for (let attempt = 0; attempt < 500; attempt++) {
    const found = await ask()
    if (found) return found
    await sleep(10)
  }
  throw Error(`nothing came: ${ask}`)
}

async function refused(action) {
  try {
    await action()
    return 'not refused'
  } catch (error) {
    return `${error.status} ${error.response?.data?.message ?? ''}`.trim().replace(/\s+/g, ' ')
  }
}
