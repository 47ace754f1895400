import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseEnv } from 'node:util';
import { childrenOf, serverUser, signal, untilEnded } from '../../support/postgresql-server.js';
import { freePort, type Program, startProgram } from '../../support/programs.js';

const FILES = new URL('../../../ops/patroni/', import.meta.url);

/** The members' names in ops/patroni, with their addresses in these tests: loopback addresses of one machine. */
const MEMBERS = { db1: '127.0.0.11', db2: '127.0.0.12', db3: '127.0.0.13' } as const;
export type MemberName = keyof typeof MEMBERS;
const NAMES = Object.keys(MEMBERS) as MemberName[];

/** The ports in ops/patroni. The tests replace each by a port that is free on all addresses. */
const PORTS = ['5432', '8008', '2379', '5000'];

/** Longest time in ms for a change of the cluster, such as its first start. */
const CHANGE_MS = 90_000;

/**
 * Runs Patroni in the directory $0 of a member. The tests hold the shell's standard input open; when it closes, the shell
 * ends Patroni and PostgreSQL. Each line on it starts Patroni again, as systemd does after a crash.
 */
const KEEPER = `
  cd "$0"
  patroni patroni.yml >>log 2>&1 & pid=$!; echo $pid >pid
  while read -r line; do
    wait $pid
    patroni patroni.yml >>log 2>&1 & pid=$!; echo $pid >pid
  done
  kill -KILL $pid
  read -r postmaster <data/postmaster.pid && kill -QUIT $postmaster
  while kill -0 $postmaster 2>/dev/null; do sleep 0.1; done
  rm -rf "$0"`;

interface Member {
  readonly directory: string;
  readonly keeper: ChildProcess;
  readonly ended: Promise<unknown>;
}

interface MemberState {
  readonly name: MemberName;
  readonly role: 'leader' | 'sync_standby' | 'replica';
  readonly state: string;
}

/** Three members of Patroni, one etcd, and HAProxy, with the files of ops/patroni. */
export class PatroniCluster {
  private readonly members = new Map<MemberName, Member>();
  private readonly programs: Program[] = [];

  private constructor(
    private readonly directory: string,
    private readonly ports: ReadonlyMap<string, number>,
  ) {}

  /** Resolves when there are a leader, a synchronous standby, and another standby. */
  static async start(): Promise<PatroniCluster> {
    if (spawnSync('patroni', ['--version']).status !== 0)
      throw new Error('This test needs patroni, which is not installed.');
    const ports = new Map<string, number>();
    for (const port of PORTS) ports.set(port, await freePort());
    const cluster = new PatroniCluster(mkdtempSync(join(tmpdir(), 'petstore-patroni-')), ports);
    try {
      await cluster.startEtcd();
      for (const name of NAMES) cluster.add(name);
      await cluster.untilComplete();
      const file = join(cluster.directory, 'haproxy.cfg');
      writeFileSync(file, cluster.file('haproxy.cfg'));
      cluster.programs.push(
        await startProgram('haproxy', ['-db', '-f', file], ports.get('5000') as number, '127.0.0.31'),
      );
    } catch (error) {
      await cluster.stop();
      throw error;
    }
    return cluster;
  }

  /** A file of ops/patroni with the addresses and ports of this cluster. */
  file(name: string): string {
    const text = readFileSync(new URL(name, FILES), 'utf8').replaceAll('10.0.0.', '127.0.0.');
    return [...this.ports].reduce(
      (replaced, [port, free]) => replaced.replace(new RegExp(`(?<=:|port )${port}\\b`, 'g'), String(free)),
      text,
    );
  }

  /** The settings that a file of ops/patroni has for the service. */
  settings(name: string): Record<string, string> {
    return parseEnv(this.file(name)) as Record<string, string>;
  }

  /** URI of the database `postgres` on the leader, as superuser. */
  async leaderUrl(): Promise<string> {
    return `postgresql://postgres:secret-of-the-superuser@${MEMBERS[await this.leader()]}:${this.ports.get('5432')}/postgres`;
  }

  async leader(): Promise<MemberName> {
    const leader = (await this.states()).find(({ role, state }) => role === 'leader' && state === 'running');
    if (leader === undefined) throw new Error('The cluster has no leader.');
    return leader.name;
  }

  /** Waits until another member is the leader. Throws when that takes more than CHANGE_MS. */
  async untilLeaderIsNot(former: MemberName): Promise<void> {
    const isAnother = async (): Promise<boolean> => (await this.leader().catch(() => former)) !== former;
    await this.until(`${former} is no longer the leader`, isAnother);
  }

  /** Waits until there are a leader, a synchronous standby, and another one that follows the leader. */
  async untilComplete(): Promise<void> {
    await this.until('the cluster is complete', async () => {
      const states = await this.states();
      const roles = states.filter(({ state }) => /running|streaming/.test(state)).map(({ role }) => role);
      return roles.sort().join() === 'leader,replica,sync_standby';
    });
  }

  /** A planned switchover. Resolves when patronictl says that it is done. */
  switchover(): Promise<void> {
    const { directory } = this.members.get('db1') as Member;
    const child = spawn('patronictl', ['-c', 'patroni.yml', 'switchover', 'petstore', '--force'], {
      cwd: directory,
      env: { PATH: process.env.PATH, LC_ALL: 'C.UTF-8', HOME: directory },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => (output += text));
    return once(child, 'close').then(([code]) => {
      if (code !== 0 || !output.includes('Successfully switched over')) throw new Error(`patronictl fails: ${output}`);
    });
  }

  /** Kills Patroni and all processes of PostgreSQL of a member with SIGKILL, like a power failure. */
  async kill(name: MemberName): Promise<void> {
    const { directory } = this.members.get(name) as Member;
    const patroni = Number(readFileSync(join(directory, 'pid'), 'utf8'));
    const postmaster = Number(readFileSync(join(directory, 'data/postmaster.pid'), 'utf8').split('\n')[0]);
    // Suspend both first, so that neither notices the other's end.
    for (const pid of [patroni, postmaster]) signal(pid, 'SIGSTOP');
    const pids = [patroni, ...childrenOf(patroni), ...childrenOf(postmaster), postmaster];
    pids.forEach((pid) => signal(pid, 'SIGKILL'));
    await untilEnded(pids);
  }

  /** Starts Patroni again after `kill`. */
  restart(name: MemberName): void {
    this.members.get(name)?.keeper.stdin?.write('start\n');
  }

  async stop(): Promise<void> {
    for (const { keeper, ended } of this.members.values()) {
      keeper.ref();
      keeper.stdin?.end();
      await ended;
    }
    for (const program of this.programs) await program.stop();
    rmSync(this.directory, { recursive: true, force: true });
  }

  private add(name: MemberName): void {
    const directory = join(this.directory, name);
    const user = serverUser();
    mkdirSync(directory);
    const text = this.file('patroni.yml')
      .replaceAll('db1', name)
      .replaceAll(MEMBERS.db1, MEMBERS[name])
      .replace('/var/lib/postgresql/15/petstore', join(directory, 'data'))
      .replace('/var/lib/postgresql/petstore.pgpass', join(directory, 'pgpass'))
      .replace('/var/run/postgresql', directory);
    writeFileSync(join(directory, 'patroni.yml'), text, { mode: 0o644 });
    if (user) {
      chownSync(directory, user.uid, user.gid);
      spawnSync('chmod', ['755', this.directory]);
    }
    const keeper = spawn('/bin/sh', ['-c', KEEPER, directory], {
      ...user,
      cwd: directory,
      detached: true,
      env: { PATH: process.env.PATH, LC_ALL: 'C.UTF-8', HOME: directory },
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    const ended = once(keeper, 'close');
    keeper.unref();
    (keeper.stdin as Socket).unref();
    this.members.set(name, { directory, keeper, ended });
  }

  private async startEtcd(): Promise<void> {
    const port = this.ports.get('2379') as number;
    const client = `http://127.0.0.21:${port}`;
    const peer = `http://127.0.0.21:${await freePort()}`;
    const options = {
      'data-dir': join(this.directory, 'etcd'),
      'listen-client-urls': client,
      'advertise-client-urls': client,
      'listen-peer-urls': peer,
      'initial-advertise-peer-urls': peer,
      'initial-cluster': `default=${peer}`,
    };
    const parameters = Object.entries(options).map(([name, value]) => `--${name}=${value}`);
    this.programs.push(await startProgram('etcd', parameters, port, '127.0.0.21'));
  }

  /** The states of all members, from the first member that answers. */
  private async states(): Promise<readonly MemberState[]> {
    for (const host of Object.values(MEMBERS)) {
      try {
        const url = `http://${host}:${this.ports.get('8008')}/cluster`;
        const answer = await fetch(url, { signal: AbortSignal.timeout(2_000) });
        return ((await answer.json()) as { members: MemberState[] }).members;
      } catch {
        // Another member may respond.
      }
    }
    return [];
  }

  private async until(what: string, condition: () => Promise<boolean>): Promise<void> {
    for (const deadline = performance.now() + CHANGE_MS; !(await condition()); await sleep(200)) {
      if (performance.now() < deadline) continue;
      const logOf = ({ directory }: Member): string => readFileSync(join(directory, 'log'), 'utf8').slice(-3_000);
      const logs = [...this.members].map(([name, member]) => `${name}:\n${logOf(member)}`).join('\n');
      throw new Error(`It does not become true that ${what}: ${JSON.stringify(await this.states())}\n${logs}`);
    }
  }
}
