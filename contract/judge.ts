import { sendSegments } from '../test/support/raw-request.js';
import type { Row, Step } from './table.js';

/** A server, and the variables of the rows that it is judged by. */
export interface Server {
  /** `http://host:port` or `https://host:port` */
  readonly url: string;
  /** `key` and `base` at least. Rows that name other variables are left out without them. */
  readonly variables: Readonly<Record<string, string>>;
}

/** One response as it was received, the names of its fields in lower case. */
export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
}

/** A promise that was not kept. */
interface Failure {
  readonly step: Step;
  readonly came: string;
  readonly right: string;
}

/** The findings of a run. */
export interface Verdict {
  readonly leftOut: readonly Row[];
  /** For each row that does not hold its place, its line, and what was sent, came and is right. */
  readonly failures: readonly string[];
  /** The bodies of all errors, by code. */
  readonly errors: ReadonlyMap<string, readonly string[]>;
}

const TIMEOUT_MS = 10_000;
const ROWS_AT_ONCE = 8;

/** Sends the requests of all rows, at most ten seconds each, and compares the responses. */
export async function judge(server: Server, rows: readonly Row[]): Promise<Verdict> {
  const general = rows.filter(isGeneral);
  const waiting = rows.filter((row) => !isGeneral(row));
  const failures = new Map<string, string>();
  const leftOut: Row[] = [];
  const errors = new Map<string, string[]>();
  // One failure of a row is enough, also of a row about every response.
  const fail = (sent: string, { step: { place, line, request }, came, right }: Failure): void => {
    const key = `${place} ${request}`;
    const found = [`sent:  ${sent}`, `came:  ${came}`, `right: ${right}`].map(short);
    const text = [`${place}  ${line}`, ...found].join('\n  ');
    if (!failures.has(key)) failures.set(key, text);
  };
  const work = async (): Promise<void> => {
    for (let row = waiting.shift(); row !== undefined; row = waiting.shift()) {
      try {
        const attempt = new Attempt(server, row);
        for await (const { step, target, answer, fault } of attempt.run()) {
          if (fault !== undefined) fail(step.request, { step, ...fault });
          for (const broken of violations(answer, general, target)) fail(step.request, broken);
          const code = answer.status < 400 ? undefined : /"code":"(\w+)"/.exec(answer.text)?.[1];
          if (code !== undefined) errors.set(code, [...(errors.get(code) ?? []), answer.text]);
        }
      } catch (error) {
        if (!(error instanceof UnknownVariable)) throw error;
        leftOut.push(row);
      }
    }
  };
  await Promise.all(Array.from({ length: ROWS_AT_ONCE }, work));
  return { leftOut, failures: [...failures.values()], errors };
}

const short = (text: string): string => (text.length > 300 ? `${text.slice(0, 300)}…` : text);

const isGeneral = ({ steps }: Row): boolean => steps[0]?.request.startsWith('every ') === true;

/** The general rows that a response breaks. */
export function violations(answer: Answer, rows: readonly Row[], target = '/v1/'): Failure[] {
  return rows.filter(isGeneral).flatMap((row) => {
    const step = row.steps[0] as Step;
    const { request, answer: right } = step;
    const [, statuses = '', prefix = ''] = /^every (.*?)(?: of (\S+))?$/.exec(request) ?? [];
    const applies = new RegExp(`^(${statuses.replaceAll('x', '.').replace('response', '...').replaceAll(' ', '|')})$`);
    if (!applies.test(String(answer.status)) || !target.startsWith(prefix)) return [];
    const found = right.startsWith('never ')
      ? new RegExp(right.slice(6), 'i').exec(answer.text)?.[0]
      : right.startsWith('only ')
        ? Object.keys(answer.headers).find((name) => !right.slice(5).split(' ').includes(name))
        : differenceOf(
            answer,
            readAnswer(`${answer.status} ${right}`, (text) => text),
          );
    return found === undefined ? [] : [{ step, came: found, right: `${request}: ${right}` }];
  });
}

/** The variables that responses set. */
const LEARNED = ['id', 'tag', 'next', 'cursor', 'body', 'length', 'allow'];

/** A variable that the runner was not given. */
class UnknownVariable extends Error {}

interface Outcome {
  readonly step: Step;
  readonly target: string;
  readonly answer: Answer;
  readonly fault?: { came: string; right: string } | undefined;
}

/** A row that is judged: its steps, and values taken from responses. */
class Attempt {
  private readonly said = new Map<string, string>();

  constructor(
    private readonly server: Server,
    private readonly row: Row,
  ) {
    const { base = '' } = server.variables;
    const unique = Math.random().toString(36).slice(2);
    const variables = { unique, origin: base.replace(/\/v1$/, ''), ...server.variables };
    for (const [name, value] of Object.entries(variables)) this.said.set(name, value);
  }

  /** Runs the steps until one fails. */
  async *run(): AsyncGenerator<Outcome> {
    for (const step of this.row.steps) {
      const [, count, status, request = ''] = /^(?:given (\d+) (\w+): )?([^]*)$/.exec(step.request) ?? [];
      const pets = Number(count ?? (request.includes('$id') && !this.said.has('id') ? 1 : 0));
      for (let pet = 0; pet < pets; pet++) {
        const body = `{"name":"Rex","categoryId":7,"status":"${status ?? 'available'}"}`;
        const [created] = parseAnswers(await this.send(`POST /v1/pets ${body}`));
        if (!this.said.has('id')) this.said.set('id', /"id":(\d+)/.exec(created?.text ?? '')?.[1] ?? '');
      }
      const text = this.resolve(request);
      const received = await this.send(text);
      const answers = parseAnswers(received, text.startsWith('HEAD '));
      const answer = answers.at(-1) ?? { status: 0, headers: {}, text: received };
      this.learn(answer);
      const right = readAnswer(step.answer, (pattern) => this.resolve(pattern));
      const statuses = answers.map((one) => one.status).join(' ');
      const came = statuses === right.statuses ? differenceOf(answer, right) : `${statuses} ${answer.text}`;
      const fault = came === undefined ? undefined : { came: came || 'nothing', right: step.answer };
      const target = text.split(' ')[text.startsWith('raw ') ? 2 : 1] ?? '';
      for (const earlier of answers.slice(0, -1).filter(({ status: final }) => final >= 200)) {
        yield { step, target, answer: earlier };
      }
      // Also what is no response, such as a connection that stays open.
      yield { step, target, answer, fault };
      if (fault !== undefined) return;
    }
  }

  private resolve(text: string): string {
    return text.replace(/\$([a-z_]+)/g, (match, name: string) => {
      const value = this.said.get(name);
      if (value === undefined && !LEARNED.includes(name)) throw new UnknownVariable(match);
      return value ?? match;
    });
  }

  private learn({ status, headers, text }: Answer): void {
    if (status >= 400) return;
    const next = /<([^>]*)>; rel="next"/.exec(String(headers['link']))?.[1];
    const found: Record<string, string | undefined> = {
      id: /"id":(-?\d+)/.exec(text)?.[1],
      tag: /"[^"]*"/.exec(String(headers['etag']))?.[0],
      next: next?.replace(/^\w+:\/\/[^/]*/, ''),
      cursor: next && /[?&]cursor=([^&]*)/.exec(next)?.[1],
      body: text,
      length: String(headers['content-length']),
      allow: headers['allow'] && String(headers['allow']),
    };
    for (const [name, value] of Object.entries(found)) {
      if (value !== undefined && !this.said.has(name)) this.said.set(name, value);
    }
  }

  private send(request: string): Promise<string> {
    const url = new URL(this.server.url);
    return sendSegments(url, this.segmentsOf(request, url.host), TIMEOUT_MS);
  }

  /** The segments of a request, one character a byte. */
  private segmentsOf(request: string, host: string): string[] {
    const bytes = (text: string): string =>
      Buffer.from(text)
        .toString('latin1')
        .replace(/\\x([0-9a-f]{2})/g, (_, code: string) => String.fromCharCode(parseInt(code, 16)));
    if (request.startsWith('raw ')) {
      return request.slice(4).replaceAll('⏎', '\r\n').split('…').map(bytes);
    }
    const [, method, target, rest = ''] = /^(\S+) (\S+) ?([^]*)$/.exec(request) ?? [];
    const [, list = '', text = ''] = /^((?:\[[\w-]+: [^\]]*\] ?)*)([^]*)$/.exec(rest) ?? [];
    const given = [...list.matchAll(/\[([\w-]+): ([^\]]*)\]/g)].map(([, name = '', value = '']) => [name, value]);
    const body = bytes(text);
    const isChunked = given.some(([name]) => name === 'Transfer-Encoding');
    const usual = [
      ['Host', host],
      ['Connection', 'close'],
      ['Authorization', `Bearer ${this.said.get('key')}`],
    ];
    if (body !== '') usual.push(['Content-Type', 'application/json']);
    if (body !== '' && !isChunked) usual.push(['Content-Length', String(body.length)]);
    const fields = [...usual.filter(([name]) => !given.some(([other]) => other === name)), ...given];
    const lines = fields
      .filter(([, value]) => value !== '-')
      .map(([name, value]) => `${name}: ${bytes(value ?? '')}\r\n`);
    const end = body === '' ? '' : `${body.length.toString(16)}\r\n${body}\r\n`;
    return [`${method} ${target} HTTP/1.1\r\n${lines.join('')}\r\n${isChunked ? `${end}0\r\n\r\n` : body}`];
  }
}

/** The responses in a text, each ended by its `Content-Length`; what follows the last one has status 0. */
function parseAnswers(received: string, isHead = false): Answer[] {
  const answers: Answer[] = [];
  for (let rest = received; rest !== '';) {
    const [head, line = ''] = /^HTTP\/1\.1 (\d{3}) [^]*?\r\n\r\n/.exec(rest) ?? [];
    if (head === undefined) return [...answers, { status: 0, headers: {}, text: rest }];
    const headers: Record<string, string> = {};
    for (const [, name = '', value = ''] of head.matchAll(/^([\w-]+): *(.*?)\r$/gm)) {
      const known = headers[name.toLowerCase()];
      headers[name.toLowerCase()] = known === undefined ? value : `${known}, ${value}`;
    }
    const status = Number(line);
    const hasBody = !isHead && status >= 200 && status !== 204 && status !== 304;
    const end = head.length + (hasBody ? Number(headers['content-length'] ?? rest.length) : 0);
    answers.push({ status, headers, text: Buffer.from(rest.slice(head.length, end), 'latin1').toString() });
    rest = rest.slice(end);
  }
  return answers;
}

interface Expected {
  readonly statuses: string;
  readonly fields: readonly (readonly [name: string, pattern: string])[];
  readonly body: string | undefined;
}

function readAnswer(text: string, resolve: (text: string) => string): Expected {
  const field = /\[([A-Z][\w-]+): ((?:"[^"]*"|[^"\]])*)\] ?/g;
  const [, statuses = '', rest = ''] = /^((?:\d{3} ?)*)([^]*)$/.exec(text) ?? [];
  const fields = [...rest.matchAll(field)].map(([, name = '', pattern = '']) => [name, resolve(pattern)] as const);
  const content = rest.replace(field, '').trim();
  const status = statuses.trim().split(' ').at(-1) ?? '';
  const [, code, message] = (status >= '400' && /^([a-z][a-z_]+) ?([^]*)$/.exec(content)) || [];
  const error = `{"code":"${code}","message":"${message || '**'}","status":${status}}`;
  return {
    statuses: statuses.trim(),
    fields,
    body: code ? resolve(error) : content === '' ? undefined : resolve(content),
  };
}

/** What differs, as it came; undefined when a response is as expected. */
function differenceOf({ status, headers, text }: Answer, { fields, body }: Expected): string | undefined {
  for (const [name, pattern] of fields) {
    const value = headers[name.toLowerCase()];
    const isRight = pattern === '-' ? value === undefined : value !== undefined && matches(String(value), pattern);
    if (!isRight) return `${status} [${name}: ${String(value ?? '-')}]`;
  }
  return body === undefined || matches(text, body) ? undefined : `${status} ${text.slice(0, 300)}`;
}

function matches(text: string, pattern: string): boolean {
  const source = pattern
    .replace(/[.+?^${}()|[\]\\]/g, '\\$&')
    .replace(/\*+/g, (stars) => (stars === '*' ? '[^{}]*' : '[^]*'));
  return new RegExp(`^${source}$`).test(text);
}
