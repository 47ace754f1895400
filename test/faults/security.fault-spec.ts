import { execFile, spawnSync } from 'node:child_process';
import { Agent } from 'node:http';
import {
  chmodSync,
  chownSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ServiceProcess } from '../support/service-process.js';
import { report } from '../support/figures.js';
import { type Outcome, percentile, send } from '../support/load.js';

/*
 * The service as an operator installs it: the files that it reads and writes, and the connections that it makes. Also
 * whether the time of a refusal reveals anything about a key.
 */

const ROOT = join(import.meta.dirname, '../..');

/**
 * A user id that nobody else has, so that all of the user's files come from the service. It needs no entry in
 * /etc/passwd.
 */
const UID = 54_321;
const isRoot = process.getuid?.() === 0;

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'petstore-security-'));
  // The other user must be able to read this directory.
  chmodSync(directory, 0o755);
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

/** Installs as operators do: the build, and the production packages of the lock file, without install scripts. */
async function installForProduction(): Promise<string> {
  const installation = join(directory, 'installation');
  mkdirSync(installation);
  for (const name of ['package.json', 'package-lock.json', 'dist']) {
    cpSync(join(ROOT, name), join(installation, name), { recursive: true, preserveTimestamps: true });
  }
  await promisify(execFile)('npm', ['ci', '--omit=dev', '--ignore-scripts', '--no-audit'], { cwd: installation });
  return installation;
}

/** All paths below a directory that changed after the marker file did. */
function changedSince(marker: string, below: string, ...conditions: string[]): string[] {
  const { stdout } = spawnSync('find', [below, '-xdev', '-newer', marker, ...conditions], {
    encoding: 'utf8',
    maxBuffer: 64 * 2 ** 20,
  });
  return stdout.split('\n').filter((path) => path !== '');
}

/** Local ports of the TCP connections of a process, from /proc (Linux only). */
function localPortsOfConnections(pid: number): number[] {
  const own = new Set(
    readdirSync(`/proc/${pid}/fd`).flatMap((name) => {
      try {
        return /^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${name}`))?.[1] ?? [];
      } catch {
        // The descriptor was closed in the meantime.
        return [];
      }
    }),
  );
  const ESTABLISHED = '01';
  return ['tcp', 'tcp6'].flatMap((table) =>
    readFileSync(`/proc/${pid}/net/${table}`, 'utf8')
      .split('\n')
      .slice(1)
      .map((line) => line.trim().split(/\s+/))
      .filter((fields) => fields[3] === ESTABLISHED && own.has(fields[9] ?? ''))
      .map((fields) => parseInt(fields[1]?.split(':')[1] ?? '', 16)),
  );
}

/** Root runs the service as another user, so that file owners show what the service wrote. */
const INSTALLATION = `a production install${isRoot ? ', as another user,' : ''}`;

test.each([INSTALLATION])(
  '%s serves, writes only to DATA_DIR, which no other user can read, and opens no connection',
  async () => {
    const installation = await installForProduction();
    const home = join(directory, 'home');
    const state = join(directory, 'state');
    for (const name of [home, state]) mkdirSync(name);
    if (isRoot) chownSync(state, UID, UID);
    const marker = join(directory, 'marker');
    writeFileSync(marker, '');
    // File times may be coarser than the clock, so leave a gap.
    await new Promise((next) => setTimeout(next, 50));

    const dataDir = join(state, 'data');
    const settings = { DATA_DIR: dataDir, HOME: home, TMPDIR: home, NODE_ENV: 'production' };
    const program = [join(installation, 'dist/src/main.js')];
    const user = isRoot ? { uid: UID, gid: UID } : {};
    const service = new ServiceProcess(settings, home, { program, ...user });
    try {
      const origin = (await service.origin()).replace('localhost', '127.0.0.1');
      const apiKey = /export API_KEY=(\S+)/.exec(service.stderr)?.[1] ?? '';
      const call = (method: 'GET' | 'POST', path: string, body?: string): Promise<Outcome> =>
        send({ method, path, ...(body === undefined ? {} : { body }) }, { origin, apiKey });
      expect((await call('POST', '/v1/pets', '{"name":"Rex","categoryId":7}')).status).toBe(201);
      expect((await call('GET', '/v1/pets')).text).toBe('[{"id":1,"name":"Rex","categoryId":7,"status":"available"}]');
      const page = await call('GET', '/docs');
      const files = [...page.text.matchAll(/(?:src|href)="(docs\/assets[^"]*)"/g)].map(([, path]) => `/${path}`);
      expect(files.length).toBeGreaterThan(3);
      for (const path of [...files, '/openapi.json', '/openapi.yaml', '/health/ready']) {
        expect([path, (await call('GET', path)).status]).toEqual([path, 200]);
      }
      if (existsSync('/proc/net/tcp')) {
        const agent = new Agent({ keepAlive: true });
        await send({ method: 'GET', path: '/v1/pets' }, { origin, apiKey }, agent);
        const ports = localPortsOfConnections(service.pid);
        agent.destroy();
        // Our own connection shows that connections are found. There must be no other.
        expect(ports.length).toBeGreaterThanOrEqual(1);
        expect(new Set(ports)).toEqual(new Set([Number(new URL(origin).port)]));
      }
      expect(statSync(dataDir).mode & 0o777).toBe(0o700);
      expect(statSync(join(dataDir, 'postgres')).mode & 0o777).toBe(0o700);
      expect(await service.stop('SIGTERM')).toBe(0);
      expect(service.stdout).not.toMatch(/pets_[0-9A-Za-z]{12}/);
    } finally {
      await service.kill();
    }

    const written = changedSince(marker, directory).filter((path) => path !== state && !path.startsWith(dataDir));
    expect(written).toEqual([]);
    expect(changedSince(marker, dataDir).length).toBeGreaterThan(10);
    if (isRoot) {
      const ofUser = changedSince(marker, '/', '-uid', String(UID)).filter((path) => !path.startsWith(state));
      expect(ofUser).toEqual([]);
    }
  },
  300_000,
);

test('the time of a refusal does not reveal how many characters of a key are right', async () => {
  const valid = `a-bootstrap-key-${'0123456789abcdef'.repeat(3)}`;
  const tokens = {
    near: `${valid.slice(0, -1)}X`,
    far: `X${valid.slice(1)}`,
    // Another wrong first character: a difference from `far` is chance.
    control: `Y${valid.slice(1)}`,
  };
  const settings = { DATA_DIR: join(directory, 'data'), BOOTSTRAP_API_KEY: valid, LOG_LEVEL: 'warn' };
  const service = new ServiceProcess(settings, directory);
  try {
    const origin = (await service.origin()).replace('localhost', '127.0.0.1');
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const path = '/v1/pets?limit=1';
    expect((await send({ method: 'GET', path }, { origin, apiKey: valid }, agent)).status).toBe(200);
    const outcomes = { near: [] as Outcome[], far: [] as Outcome[], control: [] as Outcome[] };
    const names = Object.keys(tokens) as (keyof typeof tokens)[];
    const rounds = 4_000;
    for (let round = -200; round < rounds; round++) {
      // The three tokens alternate, and each goes first equally often, so that other load of the machine affects all
      // alike.
      for (let turn = 0; turn < names.length; turn++) {
        const name = names[(turn + round + names.length * 200) % names.length] as keyof typeof tokens;
        const outcome = await send({ method: 'GET', path }, { origin, apiKey: tokens[name] }, agent);
        expect(outcome.status).toBe(401);
        if (round >= 0) outcomes[name].push(outcome);
      }
    }
    agent.destroy();
    const [near, far, control] = names.map((name) => percentile(outcomes[name], 0.5)) as [number, number, number];
    const microseconds = (ms: number): number => Math.round(ms * 10_000) / 10;
    report('time of a refusal, median in µs', {
      requests: rounds * names.length,
      'last character wrong': microseconds(near),
      'first character wrong': microseconds(far),
      'another first character wrong': microseconds(control),
    });
    // The medians of thousands of requests differ by some µs. A database query or a scan of keys would exceed this
    // limit.
    expect(Math.abs(near - far)).toBeLessThan(0.25 * Math.min(far, control));
  } finally {
    await service.kill();
  }
}, 180_000);
