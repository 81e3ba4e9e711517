// Lets proxmox-api do with a Proxmox VE cluster what a fleet does, once with a ticket and once with a token, and prints each step.
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import proxmoxApi, { ProxmoxEngine } from 'proxmox-api'

async function story(login, options) {
  const engine = new ProxmoxEngine({ host: address.hostname, port: Number(address.port), ...options })
  const proxmox = proxmoxApi(engine)
  const node = proxmox.nodes.$('pve1')
  const wait = async (upid) => {
    for (;;) {
      const status = await node.tasks.$(upid).status.$get()
      if (status.status === 'stopped') {
        if (status.exitstatus !== 'OK') throw Error(`${upid}: ${status.exitstatus}`)
        return
      }
      await sleep(10)
    }
  }
  const { release } = await proxmox.version.$get()
  console.log(`${login}: version ${release}, ${(await proxmox.nodes.$get()).length} nodes`)
  const granted = await proxmox.access.permissions.$get()
  console.log(`${login}: may clone ${'VM.Clone' in granted[login === 'token' ? '/vms/9000' : '/vms']}`)
  const cluster = (await proxmox.cluster.status.$get()).find((entry) => entry.type === 'cluster')
  const pools = (await proxmox.pools.$get()).map((pool) => pool.poolid)
  console.log(`${login}: cluster ${cluster.name}, quorum ${cluster.quorate}, pools ${pools}`)
  const bridges = (await node.network.$get({ type: 'bridge' })).map((bridge) => bridge.iface)
  const vnets = (await proxmox.cluster.sdn.vnets.$get()).map((vnet) => vnet.vnet)
  console.log(`${login}: bridges ${bridges}, VNets ${vnets}`)
  const template = node.qemu.$(9000)
  const vmid = Number(await proxmox.cluster.nextid.$get())
  const clone = await template.clone.$post({ newid: vmid, name: 'from-node', description: 'owner', pool: 'virtpilot' })
  const active = await node.tasks.$get({ source: 'active', typefilter: 'qmclone' })
  console.log(`${login}: is cloning ${active.map((task) => task.upid).join() === clone}`)
  await wait(clone)
  const log = await node.tasks.$(clone).log.$get({ limit: 500 })
  console.log(`${login}: log ${log.at(-1).t}`)
  const machine = node.qemu.$(vmid)
  const { name } = await machine.config.$get()
  console.log(`${login}: cloned ${name}, template ${Boolean((await template.config.$get()).template)}`)
  await wait(await machine.config.$post({ cores: 3, tags: 'a;b' }))
  await machine.config.$put({ onboot: false })
  await wait(await machine.resize.$put({ disk: 'scsi0', size: '+1G' }))
  await wait(await machine.status.start.$post())
  const status = await machine.status.current.$get()
  console.log(`${login}: ${status.status} with ${status.cpus} cores and tags ${status.tags}`)
  console.log(`${login}: address ${await addressOf(machine)}`)
  console.log(`${login}: guest ${await refused(() => guest(login, machine.agent))}`)
  console.log(`${login}: running: ${await refused(() => machine.$delete())}`)
  await wait(await machine.status.stop.$post())
  await wait(await machine.$delete({ purge: true }))
  console.log(`${login}: missing: ${await refused(() => machine.config.$get())}`)
  await wait(await upload(engine))
  const local = node.storage.$('local')
  const volumes = (await local.content.$get({ content: 'iso' })).map((volume) => volume.volid)
  if (volumes.join() !== 'local:iso/seed.iso') throw Error(`volumes: ${volumes}`)
  await wait(await local.content.$('local:iso/seed.iso').$delete())
  console.log(`${login}: wrong: ${await refused(() => template.clone.$post({ newid: 5 }))}`)
  console.log(`${login}: ${(await proxmox.cluster.resources.$get({ type: 'vm' })).length} VM left, done`)
}

// The client cannot send files, so its ticket or token is used with a form of the runtime.
async function upload(engine) {
  const { ticket, CSRFPreventionToken } = await engine.getTicket()
  const isToken = ticket.startsWith('PVEAPIToken=')
  const headers = isToken ? { Authorization: ticket } : { Cookie: `PVEAuthCookie=${ticket}`, CSRFPreventionToken }
  const body = new FormData()
  body.append('content', 'iso')
  body.append('filename', new Blob([readFileSync(process.env.PVE_ISO)], { type: 'application/octet-stream' }), 'seed.iso')
  const response = await fetch(new URL('/api2/json/nodes/pve1/storage/local/upload', address), { method: 'POST', headers, body })
  if (response.status !== 200) throw Error(`upload: ${response.status} ${response.statusText}`)
  return (await response.json()).data
}

// Writes a file, reads it and runs a command.
async function guest(login, agent) {
  await agent.ping.$post()
  await agent['file-write'].$post({ file: '/tmp/a', content: 'hello' })
  const { content } = await agent['file-read'].$get({ file: '/tmp/a' })
  const { pid } = await agent.exec.$post({ command: ['/bin/sh', '-s'], 'input-data': 'true' })
  for (let attempt = 0; attempt < 200; attempt++) {
    const status = await agent['exec-status'].$get({ pid })
    if (status.exited) {
      console.log(`${login}: guest says ${content}, exit code ${status.exitcode}`)
      return
    }
    await sleep(20)
  }
}

// Asks until the guest agent runs.
async function addressOf(machine) {
  for (let attempt = 0; attempt < 200; attempt++) {
    try {
      const { result } = await machine.agent['network-get-interfaces'].$get()
      return result[1]['ip-addresses'][0]['ip-address']
    } catch (error) {
      if (!error.message.includes('QEMU guest agent is not running')) throw error
      await sleep(20)
    }
  }
  return 'none'
}

async function refused(action) {
  try {
    await action()
    return 'not refused'
  } catch (error) {
    return error.message.replace(/^.*(?:return Error|connection failed with) /, '').replace(/(?: return)?: \{.*$/, '')
  }
}

const address = new URL(process.env.PVE_ADDRESS)
const [tokenID, tokenSecret] = process.env.PVE_TOKEN.split('=')
await story('ticket', { username: process.env.PVE_USER, password: process.env.PVE_PASSWORD })
await story('token', { tokenID, tokenSecret })
