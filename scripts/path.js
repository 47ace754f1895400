/**
 * Prints the way of warm requests through the files of the service: node scripts/path.js, or node scripts/path.js GET /v1/pets
 *
 * Starts the built service on the database of DATABASE_URL, else on an embedded one. Each of its functions records its file
 * when it is called. The room of a file is its library, or its folder of src. What all rooms stand on is left out. A body follows
 * its path; further requests may follow.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { register } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { isMainThread } from 'node:worker_threads';
import ts from 'typescript';

const SERVICE = new URL('../dist/', import.meta.url).href;
const API_KEY = 'bootstrap-key-of-the-path';
const PET = '{"name":"Rex","categoryId":7}';
const REQUESTS = ['GET', '/v1/pets/1', 'POST', '/v1/pets', PET];
/** Errors, settings, the runtime and int64 are no rooms of the way. */
const GROUND = /^libs\/(errors|settings|runtime)\/|^libs\/json\/src\/int64\.ts$/;
const WARM_UP = 30;
const RECORDED_AT_MOST = 60;
/** The shortest way must have been seen this often. */
const SEEN = 5;

/** Module hook of Node: adds a call to each function of the service. */
export async function load(url, context, next) {
  const loaded = await next(url, context);
  // The embedded database stands in for PostgreSQL, so its files are no part of the way.
  if (!url.startsWith(SERVICE) || !url.endsWith('.js') || url.includes('/libs/embedded-postgres/')) return loaded;
  const file = url.slice(SERVICE.length).replace(/\.js$/, '.ts');
  return { ...loaded, source: withCalls(String(loaded.source), `globalThis.passes?.(${JSON.stringify(file)})`) };
}

function withCalls(text, call) {
  const inserts = [];
  const visit = (node) => {
    if (ts.isFunctionLike(node) && !isAccessor(node) && node.body) {
      const { body } = node;
      if (ts.isBlock(body)) inserts.push([body.getStart() + 1, `${call};`]);
      else inserts.push([body.getStart(), `(${call},`], [body.end, ')']);
    }
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile('file.js', text, ts.ScriptTarget.Latest, true));
  // The last place first, so that the other places stay right. Of two at one place, the one of the inner function.
  const order = inserts.map((insert, index) => [...insert, index]).sort((a, b) => b[0] - a[0] || b[2] - a[2]);
  return order.reduce((done, [place, added]) => done.slice(0, place) + added + done.slice(place), text);
}

/** Whether a function reads or writes a property, also in a property descriptor. Node's parser reads one in the middle of a way: no step. */
const isAccessor = (node) => ts.isAccessor(node) || (ts.isMethodDeclaration(node) && /^[gs]et$/.test(node.name.text));

async function startService(dataDir) {
  const { createApplication, readConfig } = await import(`${SERVICE}libs/service/index.js`);
  const { PET_STORE } = await import(`${SERVICE}src/app.description.js`);
  const { AppModule } = await import(`${SERVICE}src/app.module.js`);
  const { DATABASE_URL } = process.env;
  const database = DATABASE_URL === undefined ? { DATA_DIR: dataDir } : { DATABASE_URL };
  const app = await createApplication(
    AppModule,
    await readConfig(PET_STORE, { ...database, BOOTSTRAP_API_KEY: API_KEY }),
  );
  await app.listen(0, '127.0.0.1');
  return app;
}

/** Lets the work end that follows a response, such as its log line. A fixed time would fail on a busy machine. */
async function untilIdle() {
  for (let turn = 0; turn < 10; turn++) await setImmediate();
}

/** Runs in a process of its own, whose standard output is the log of the service. */
async function record(args) {
  const dataDir = mkdtempSync(join(tmpdir(), 'petstore-path-'));
  const app = await startService(dataDir);
  const agent = new Agent({ keepAlive: true });
  const send = async (method, path, body) => {
    const outgoing = request(`${await app.getUrl()}${path}`, {
      method,
      agent,
      headers: { authorization: `Bearer ${API_KEY}`, ...(body && { 'content-type': 'application/json' }) },
    }).end(body);
    const [answer] = await once(outgoing, 'response');
    await once(answer.resume(), 'end');
    return answer.statusCode;
  };
  await send('POST', '/v1/pets', PET);
  const ways = [];
  for (const one of requestsOf(args)) ways.push(await shortestWay(() => send(...one)));
  process.send(ways);
  agent.destroy();
  await app.close();
  rmSync(dataDir, { recursive: true });
  process.disconnect();
}

/** The method, path and body of each request. A word of capital letters begins one. */
function requestsOf(args) {
  const starts = [...args.keys()].filter((index) => /^[A-Z]+$/.test(args[index]));
  return starts.map((start, index) => args.slice(start, starts[index + 1]));
}

async function shortestWay(send) {
  for (let sent = 0; sent < WARM_UP; sent++) await send();
  const ways = [];
  let status;
  let shortest;
  // Timers of the service, and responses of the database in several parts, make other ways longer.
  do {
    const way = [];
    globalThis.passes = (file) => GROUND.test(file) || way.push(file);
    status = await send();
    await untilIdle();
    globalThis.passes = undefined;
    ways.push(way);
    shortest = ways.reduce((one, other) => (other.length < one.length ? other : one));
  } while (ways.filter(({ length }) => length === shortest.length).length < SEEN && ways.length < RECORDED_AT_MOST);
  return { status, way: shortest };
}

const roomOf = (file) => /^(?:libs|src)\/([^/]+)\//.exec(file)?.[1] ?? 'src';

/** The visits of rooms, in their order; a visit of a room that the request has left before is a return. */
function visitsOf(way) {
  const visits = [];
  for (const file of way) {
    const room = roomOf(file);
    const isReturn = visits.some((visit) => visit.room === room);
    if (visits.at(-1)?.room !== room) visits.push({ room, isReturn, files: new Set() });
    visits.at(-1).files.add(file.replace(/^(libs\/[^/]+\/)?src\//, '').replace(`${room}/`, ''));
  }
  return visits;
}

function print({ status, way }) {
  const visits = visitsOf(way);
  const lines = visits.map(
    ({ room, isReturn, files }) => `${isReturn ? '<' : ' '} ${room.padEnd(15)} ${[...files].join(' ')}`,
  );
  const rooms = new Set(visits.map(({ room }) => room)).size;
  const returns = visits.filter(({ isReturn }) => isReturn).length;
  lines.push(`${status}: ${new Set(way).size} files in ${rooms} rooms, ${returns} returns (<)`);
  process.stdout.write(`${lines.join('\n')}\n`);
}

async function main(args) {
  const child = fork(import.meta.filename, args.length > 0 ? args : REQUESTS, {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const [ways] = await once(child, 'message');
  ways.forEach(print);
}

if (isMainThread && process.send) register(import.meta.url);
if (isMainThread) await (process.send ? record : main)(process.argv.slice(2));
