/** One request of a workload, in the form that `load/requests.lua` reads. */
export type RequestLine = string;

/** A kind of traffic. Its requests are the same for every server, but for the cursors, which are each server's own. */
export interface Workload {
  readonly name: string;
  /** Requests to send round and round, on a catalogue of so many animals. */
  lines(rows: number, server: { follow(path: string, pages: number): Promise<string[]> }): Promise<RequestLine[]>;
}

/** Pages that the workload `walk` asks for, one after the other. */
const WALKED_PAGES = 500;

/** Different animals that the workload `get` asks for, and that `create` adds, before the same come again. */
const DIFFERENT_REQUESTS = 5_000;

const get = (path: string): RequestLine => `GET\t${path}`;

/** The workloads of the benchmark, on a catalogue of so many animals. */
export const workloads: readonly Workload[] = [
  { name: 'list', lines: () => Promise.resolve([get('/v1/pets')]) },
  { name: 'status', lines: () => Promise.resolve([get('/v1/pets?status=sold')]) },
  { name: 'walk', lines: async (_rows, server) => (await server.follow('/v1/pets', WALKED_PAGES)).map(get) },
  {
    name: 'get',
    lines: (rows) => Promise.resolve(sequence((random) => get(`/v1/pets/${1 + Math.floor(random() * rows)}`))),
  },
  {
    name: 'create',
    lines: () =>
      Promise.resolve(
        sequence((random, index) => {
          const pet = { name: `Animal ${index}`, categoryId: Math.floor(random() * 1000), status: 'pending' };
          return `POST\t/v1/pets\t${JSON.stringify(pet)}`;
        }),
      ),
  },
];

/** The same "random" requests in every run. */
function sequence(make: (random: () => number, index: number) => RequestLine): RequestLine[] {
  let state = 42;
  // mulberry32
  const random = (): number => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
  return Array.from({ length: DIFFERENT_REQUESTS }, (_, index) => make(random, index));
}
