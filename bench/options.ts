import { Command as Program, InvalidArgumentError, Option } from 'commander';
import { PEER_NAMES } from './peers.js';
import { workloads } from './workloads.js';

/** This service, by its name in the table. */
export const OURS = 'petstore';

/** This service on a database with `--keys` and `--idempotency-rows`. */
export const GROWN = `${OURS} grown`;

const SERVERS = [OURS, ...PEER_NAMES];
const WORKLOADS = workloads.map(({ name }) => name);

/** The options of the command line; --help describes them. */
export interface Options {
  readonly rows: readonly number[];
  readonly rounds: number;
  readonly seconds: number;
  readonly connections: readonly number[];
  readonly workloads: readonly string[];
  readonly servers: readonly string[];
  readonly ordinary?: boolean;
  readonly libraries?: boolean;
  readonly contract?: boolean;
  readonly start?: boolean;
  readonly keys?: number;
  readonly idempotencyRows?: number;
  readonly chart?: string;
  readonly json?: boolean;
}

/** Reads the command line. On --help or a wrong option, prints the help or the fault, and ends the process. */
export function readOptions(): Options {
  const program = new Program('bench')
    .description('Compares this service with servers that a user would write or choose instead, in one run.')
    .addOption(list('--rows <list>', 'sizes of the catalogue; the peers run only on the first one', numbers, [100_000]))
    .option('--rounds <n>', 'rounds, in each of which every server has its turn', number, 5)
    .option('--seconds <n>', 'length of a turn', number, 3)
    .addOption(list('--connections <list>', 'connections', numbers, [32, 1]))
    .addOption(list('--workloads <list>', 'workloads', someOf(WORKLOADS), ['list', 'status', 'walk', 'get', 'create']))
    .addOption(list('--servers <list>', 'servers', someOf(SERVERS), SERVERS))
    .option(
      '--ordinary',
      `compares only ${OURS} with itself beside what teams add: a generated feature, an interceptor, a guard`,
    )
    .option('--libraries', 'prints only what each library takes of a request of list, get and create')
    .option('--start', 'only measures the time from the start of each server to its first response; needs no wrk')
    .option('--contract', 'only counts the rows of the contract that each server keeps; needs no wrk')
    .option('--keys <n>', `runs ${OURS} also with this many API keys, all in use; needs --idempotency-rows`, number)
    .option(
      '--idempotency-rows <n>',
      `number of idempotency keys of ${GROWN}; half of them have expired and are removed during the run`,
      number,
    )
    .option('--chart <file>', 'write a chart of processor time at the first number of connections, as SVG')
    .option('--json', 'print JSON')
    .parse();
  const options = program.opts<Options>();
  if ((options.keys === undefined) !== (options.idempotencyRows === undefined)) {
    program.error("error: options '--keys' and '--idempotency-rows' need each other");
  }
  return options;
}

/** An option whose value is a list, separated by commas. */
function list<Item>(
  flags: string,
  description: string,
  parse: (text: string) => Item[],
  byDefault: readonly Item[],
): Option {
  return new Option(flags, description).argParser(parse).default(byDefault, byDefault.join());
}

function number(text: string): number {
  if (!/^[1-9]\d{0,9}$/.test(text))
    throw new InvalidArgumentError(`${JSON.stringify(text)} is no positive integer of at most ten digits.`);
  return Number(text);
}

function numbers(list: string): number[] {
  return list.split(',').map(number);
}

function someOf(names: readonly string[]): (list: string) => string[] {
  return (list) => {
    const chosen = list.split(',');
    const unknown = chosen.find((name) => !names.includes(name));
    if (unknown === undefined) return chosen;
    throw new InvalidArgumentError(`${JSON.stringify(unknown)} is unknown. Choose from ${names.join(', ')}.`);
  };
}
