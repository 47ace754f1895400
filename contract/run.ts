import { Command as Program, InvalidArgumentError } from 'commander';
import { judge } from './judge.js';
import { PARTS, PETS, REQUESTS } from './rows.js';
import type { Row } from './table.js';

/** Judges a running server by the tables of the contract. Exit code 1: a promise is broken; 2: no server to judge. */

interface Options {
  readonly url: string;
  readonly key: string;
  readonly base: string;
  readonly let: Record<string, string>;
  readonly only: string;
  readonly with?: string;
}

const options = new Program('contract')
  .description(
    'Judges a running server by the tables of the contract. Adds pets to its catalogue. Start ours with ' +
      'REQUEST_TIMEOUT_MS=1500: two rows wait for the 408 of a request that never ends.',
  )
  .requiredOption('--url <url>', 'the server, as http://host:port', anOrigin)
  .requiredOption('--key <secret>', 'an API key with the scopes pets:read and pets:write')
  .option('--base <url>', 'its PUBLIC_BASE_URL, with which its links begin', 'http://localhost:3000/v1')
  .option(
    '--let <name=value>',
    'a variable of rows: other, expired, revoked are further keys, pets_read and so on those of one scope',
    variable,
    {},
  )
  .option('--only <words>', 'only the groups of rows whose titles contain these words', '')
  .option('--with <NAME=value>', 'a setting of the server: also the groups of rows that need it')
  .parse()
  .opts<Options>();

function anOrigin(text: string): string {
  if (!/^https?:\/\/[^/?#]+\/?$/.test(text)) throw new InvalidArgumentError('Give http://host:port, without a path.');
  return text.replace(/\/$/, '');
}

function variable(text: string, others: Record<string, string>): Record<string, string> {
  const [, name, value] = /^(\w+)=(.+)$/.exec(text) ?? [];
  if (name === undefined || value === undefined) throw new InvalidArgumentError('Give name=value.');
  return { ...others, [name]: value };
}

/** Why the server cannot be judged; undefined if it can. */
async function obstacle(): Promise<string | undefined> {
  try {
    const headers = { authorization: `Bearer ${options.key}` };
    const { status } = await fetch(`${options.url}/v1/pets`, { headers, signal: AbortSignal.timeout(10_000) });
    return status === 401 ? `${options.url} refuses the key (401).` : undefined;
  } catch (error) {
    const { cause } = error as { cause?: Error };
    return `No server responds at ${options.url}: ${(cause ?? (error as Error)).message}`;
  }
}

const print = (line: string): void => void process.stdout.write(`${line}\n`);

const isChosen = ({ group, setting, steps: [step] }: Row): boolean =>
  (setting === undefined || setting === options.with) &&
  (group.includes(options.only) || step?.request.startsWith('every ') === true);

const reason = await obstacle();
if (reason === undefined) {
  const variables = { ...options.let, key: options.key, base: options.base };
  const rows = [...PETS, ...REQUESTS, ...PARTS].filter(isChosen);
  const { failures, leftOut } = await judge({ url: options.url, variables }, rows);
  failures.forEach(print);
  if (leftOut.length > 0) print(`${leftOut.length} rows were left out; they need --let.`);
  print(`${rows.length - leftOut.length - failures.length} of ${rows.length - leftOut.length} rows hold.`);
  process.exitCode = failures.length > 0 ? 1 : 0;
} else {
  process.stderr.write(`${reason}\n`);
  process.exitCode = 2;
}
