/** One request of a workload, in the form that `load/requests.lua` reads. */
export type RequestLine = string;

/** A kind of traffic. All servers get the same requests, except for cursors, which each server makes itself. */
export interface Workload {
  readonly name: string;
  /** The requests, which are sent in turn again and again, for a catalogue of `rows` pets. */
  lines(rows: number, server: { follow(path: string, pages: number): Promise<string[]> }): Promise<RequestLine[]>;
}

/** Pages in the workload `walk`. */
const WALKED_PAGES = 500;

/** Different requests in the workloads `get`, `create` and `create-once`; then they repeat. */
const DIFFERENT_REQUESTS = 5_000;

/** With its size, whatever the default of a server is. */
const FIRST_PAGE = '/v1/pets?limit=20';

const get = (path: string): RequestLine => `GET\t${path}`;

export const workloads: readonly Workload[] = [
  { name: 'list', lines: () => Promise.resolve([get(FIRST_PAGE)]) },
  { name: 'status', lines: () => Promise.resolve([get(`${FIRST_PAGE}&status=sold`)]) },
  { name: 'walk', lines: async (_rows, server) => (await server.follow(FIRST_PAGE, WALKED_PAGES)).map(get) },
  {
    name: 'get',
    lines: (rows) => Promise.resolve(sequence((random) => get(`/v1/pets/${1 + Math.floor(random() * rows)}`))),
  },
  { name: 'create', lines: () => Promise.resolve(sequence(create)) },
  {
    name: 'create-once',
    lines: () => Promise.resolve(sequence((random, index) => `${create(random, index)}\tonce`)),
  },
];

function create(random: () => number, index: number): RequestLine {
  const pet = { name: `Pet ${index}`, categoryId: Math.floor(random() * 1000), status: 'pending' };
  return `POST\t/v1/pets\t${JSON.stringify(pet)}`;
}

/** Pseudo-random requests, the same in every run. */
function sequence(make: (random: () => number, index: number) => RequestLine): RequestLine[] {
  let state = 42;
  // The generator mulberry32.
  const random = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
  return Array.from({ length: DIFFERENT_REQUESTS }, (_, index) => make(random, index));
}
