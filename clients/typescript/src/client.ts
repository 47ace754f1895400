import {
  API_KEY,
  BASE_URL,
  COUNT,
  ENTITY_TAG,
  FUNCTION,
  IDEMPOTENCY_KEY,
  invalidArgument,
  optional,
  readMembers,
  SIGNAL,
  TEXT,
  TIME_LIMIT,
} from './arguments.js';
import { PetStoreError, reasonOf } from './errors.js';
import type { components } from './generated/api.js';
import { linkTarget, parseDeprecation, parseHttpDate } from './header-fields.js';
import { requireBigint, writeBody } from './json.js';
import { type Answer, type OperationId, randomId, Transport } from './transport.js';

/** A pet of the catalogue. */
export type Pet = components['schemas']['Pet'];
/** A pet to add. A member that is undefined is left out. */
export type NewPet = WithUndefined<components['schemas']['NewPet']>;
/** Availability of a pet. */
export type PetStatus = components['schemas']['PetStatus'];

type WithUndefined<T> = { [K in keyof T]: T extends Required<Pick<T, K>> ? T[K] : T[K] | undefined };

export interface PetStoreClientOptions {
  /** Address of the service with its version, such as `https://petstore.example/v1`. */
  readonly baseUrl: string;
  /** Sent as `Authorization: Bearer …` to the origin of `baseUrl` and nowhere else. */
  readonly apiKey: string;
  /** Sends the requests. Default: the global `fetch`, which is looked up for each request. */
  readonly fetch?: typeof fetch | undefined;
  /** Time limit for one attempt, 1 to 2,147,483,647 ms. Default: 15,000. */
  readonly attemptTimeoutMs?: number | undefined;
  /** Largest number of attempts of one call; 1 for no retries. Default: 6. */
  readonly maxAttempts?: number | undefined;
  /** Time limit for one call, with all attempts and the waits between them, 1 to 2,147,483,647 ms. Default: 60,000. */
  readonly maxTotalMs?: number | undefined;
  /**
   * Called once for each operation that will be removed. If it fails, the call goes on, and a warning on the console
   * says why. Default: a warning on the console.
   */
  readonly onDeprecation?: ((notice: DeprecationNotice) => void) | undefined;
}

/** The service's announcement of an operation that will be removed. */
export interface DeprecationNotice {
  readonly operation: OperationId;
  /** Since when the operation is deprecated. */
  readonly deprecation: Date | undefined;
  /** When the operation may be removed. */
  readonly sunset: Date | undefined;
  /** Address of the operation to use instead. */
  readonly successor: string | undefined;
  /** Address of a page about the deprecation. */
  readonly documentation: string | undefined;
}

export interface CallOptions {
  /** Ends the call, its retries and its waits. The call rejects with the code `aborted`. */
  readonly signal?: AbortSignal | undefined;
}

export interface CreatePetOptions extends CallOptions {
  /**
   * 1 to 255 characters of printable ASCII. For 24 hours, calls with the same key and the same pet add one pet. The
   * client makes a key for each call without one. Give one to repeat the call safely after your own process has ended.
   */
  readonly idempotencyKey?: string | undefined;
}

export interface ListPetsOptions extends CallOptions {
  /** Only pets with this availability. */
  readonly status?: PetStatus | undefined;
  /** Largest number of pets in a page, 1 to 100. */
  readonly limit?: number | undefined;
}

/** Selects the first page of a list, or the page that `next` names. */
export type ListPetsPageOptions = ListPetsOptions | NextPageOptions;

export interface NextPageOptions extends CallOptions {
  /** `next` of the previous page. It includes `status` and `limit`; others beside it have no effect. */
  readonly next: string;
}

export interface Conditional {
  /** `etag` of an earlier response to the same call: the response is {@link NotModified} while nothing has changed. */
  readonly ifNoneMatch: string | undefined;
}

/** Nothing has changed since the response with this `etag`. */
export interface NotModified {
  readonly notModified: true;
  readonly etag: string | undefined;
}

export interface PetsPage {
  readonly notModified: false;
  /** By ascending id. */
  readonly pets: readonly Pet[];
  /** The next page; undefined on the last page. */
  readonly next: string | undefined;
  readonly etag: string | undefined;
}

export interface FetchedPet {
  readonly notModified: false;
  readonly pet: Pet;
  readonly etag: string | undefined;
}

type ReadOptions = CallOptions & Partial<Conditional>;
type PageOptions = ReadOptions & ListPetsOptions & Partial<NextPageOptions>;

const LIST_OPTIONS = { status: optional(TEXT), limit: optional(COUNT), signal: optional(SIGNAL) };
const READ_OPTIONS = { ifNoneMatch: optional(ENTITY_TAG), signal: optional(SIGNAL) };
const PAGE_OPTIONS = { ...LIST_OPTIONS, ...READ_OPTIONS, next: optional(TEXT) };

/**
 * A client of the Pet Store Service. Identifiers are bigint in arguments and results, and keep every digit.
 *
 * Each call is repeated after broken connections, time-outs, 429, 502, 503 and 504, within the limits of the options.
 * Every method rejects only with a {@link PetStoreError}.
 */
export class PetStoreClient {
  private readonly baseUrl: URL;
  private readonly transport: Transport;
  private readonly onDeprecation: (notice: DeprecationNotice) => void;
  private readonly reportedOperations = new Set<OperationId>();

  /** @throws PetStoreError `invalid_argument` */
  constructor(options: PetStoreClientOptions) {
    const { baseUrl, onDeprecation, ...transport } = readMembers('options', options, {
      baseUrl: BASE_URL,
      apiKey: API_KEY,
      fetch: optional(FUNCTION),
      attemptTimeoutMs: optional(TIME_LIMIT),
      maxAttempts: optional(COUNT),
      maxTotalMs: optional(TIME_LIMIT),
      onDeprecation: optional(FUNCTION),
    });
    this.baseUrl = new URL(baseUrl);
    this.baseUrl.pathname = this.baseUrl.pathname.replace(/\/*$/, '/');
    this.onDeprecation = onDeprecation ?? warnOnConsole;
    const { apiKey, fetch, attemptTimeoutMs = 15_000, maxAttempts = 6, maxTotalMs = 60_000 } = transport;
    this.transport = new Transport(
      { apiKey, fetch, attemptTimeoutMs, maxAttempts, maxTotalMs },
      ({ operation }, headers) => this.reportDeprecation(operation, headers),
    );
  }

  /** Adds a pet, exactly once however often the request must be sent. */
  async createPet(pet: NewPet, options: CreatePetOptions = {}): Promise<Pet> {
    const { idempotencyKey = randomId(), signal } = readMembers('options', options, {
      idempotencyKey: optional(IDEMPOTENCY_KEY),
      signal: optional(SIGNAL),
    });
    const answer = await this.transport.send({
      operation: 'createPet',
      method: 'POST',
      url: new URL('pets', this.baseUrl),
      headers: {
        'content-type': 'application/json',
        'idempotency-key': `"${idempotencyKey.replace(/["\\]/g, '\\$&')}"`,
      },
      body: writeBody('pet', pet),
      expected: [201],
      isBody: isPet,
      signal,
    });
    return answer.body as Pet;
  }

  /** All pets by ascending id, page after page as the caller consumes them. `limit` is the size of a page. */
  async *listPets(options: ListPetsOptions = {}): AsyncGenerator<Pet, void, undefined> {
    const { signal, ...first } = readMembers('options', options, LIST_OPTIONS);
    let page = (await this.readPage({ ...first, signal })) as PetsPage;
    for (;;) {
      yield* page.pets;
      if (page.next === undefined) return;
      page = (await this.readPage({ next: page.next, signal }, page.pets.at(-1)?.id)) as PetsPage;
    }
  }

  /** One page of pets. */
  listPetsPage(options?: ListPetsPageOptions): Promise<PetsPage>;
  listPetsPage(options: ListPetsPageOptions & Conditional): Promise<PetsPage | NotModified>;
  async listPetsPage(options: ListPetsPageOptions & Partial<Conditional> = {}): Promise<PetsPage | NotModified> {
    return this.readPage(readMembers<PageOptions>('options', options, PAGE_OPTIONS));
  }

  /**
   * One pet by its identifier.
   *
   * @deprecated The service removes the operation on 5 December 2030. Use `listPets` with a `status`.
   */
  getPet(petId: bigint, options?: CallOptions): Promise<FetchedPet>;
  /** @deprecated The service removes the operation on 5 December 2030. Use `listPets` with a `status`. */
  getPet(petId: bigint, options: CallOptions & Conditional): Promise<FetchedPet | NotModified>;
  async getPet(petId: bigint, options: CallOptions & Partial<Conditional> = {}): Promise<FetchedPet | NotModified> {
    requireBigint('petId', petId);
    const { status, headers, body } = await this.get('getPet', new URL(`pets/${petId}`, this.baseUrl), isPet, options);
    const etag = headers.get('etag') ?? undefined;
    if (status === 304) return { notModified: true, etag };
    return { notModified: false, pet: body as Pet, etag };
  }

  private get(
    operation: OperationId,
    url: URL,
    isBody: (body: unknown) => boolean,
    options: ReadOptions,
  ): Promise<Answer> {
    const { ifNoneMatch, signal } = readMembers<ReadOptions>('options', options, READ_OPTIONS);
    const isConditional = ifNoneMatch !== undefined;
    return this.transport.send({
      operation,
      method: 'GET',
      url,
      headers: isConditional ? { 'if-none-match': ifNoneMatch } : {},
      expected: isConditional ? [200, 304] : [200],
      isBody,
      signal,
    });
  }

  /** @param after the last pet of the page before */
  private async readPage(options: PageOptions, after?: bigint): Promise<PetsPage | NotModified> {
    const url = this.pageAddress(options);
    const { ifNoneMatch, signal } = options;
    const { status, headers, requestId, body } = await this.get('listPets', url, isListOfPets, { ifNoneMatch, signal });
    const etag = headers.get('etag') ?? undefined;
    if (status === 304) return { notModified: true, etag };

    const pets = body as Pet[];
    const link = linkTarget(headers.get('link'), 'next');
    const next = link === undefined ? undefined : this.pageNamedBy(link);
    const [first] = pets;
    const wentBack = first !== undefined && after !== undefined && first.id <= after;
    const leadsOn = next !== undefined && first !== undefined && cursorOf(next) !== cursorOf(url);
    if (wentBack || (link !== undefined && !leadsOn)) {
      const message =
        'The list has no end: ' +
        (wentBack ? 'this page does not begin after the last one.' : 'the link to the next page does not lead to one.');
      throw new PetStoreError({ code: 'unexpected_response', message, status, requestId });
    }
    return { notModified: false, pets, next: next?.href, etag };
  }

  private pageAddress({ next, limit, status }: PageOptions): URL {
    if (next !== undefined) {
      const page = this.pageNamedBy(next);
      if (page === undefined) throw invalidArgument('next', { text: 'the next of an earlier page' }, next);
      return page;
    }
    const url = new URL('pets', this.baseUrl);
    if (limit !== undefined) url.searchParams.set('limit', String(limit));
    if (status !== undefined) url.searchParams.set('status', status);
    return url;
  }

  /**
   * The page that a link names, at `baseUrl`: the service may be known by several addresses, and the API key must be sent
   * to no other one. So only the query of a link counts.
   */
  private pageNamedBy(link: string): URL | undefined {
    const url = new URL('pets', this.baseUrl);
    try {
      url.search = new URL(link, this.baseUrl).search;
    } catch {
      return undefined;
    }
    return cursorOf(url) === null ? undefined : url;
  }

  private reportDeprecation(operation: OperationId, headers: Headers): void {
    const [deprecation, sunset] = [headers.get('deprecation'), headers.get('sunset')];
    if ((deprecation === null && sunset === null) || this.reportedOperations.has(operation)) return;
    this.reportedOperations.add(operation);
    const link = headers.get('link');
    const notice = {
      operation,
      deprecation: parseDeprecation(deprecation),
      sunset: parseHttpDate(sunset),
      successor: linkTarget(link, 'successor-version'),
      documentation: linkTarget(link, 'deprecation'),
    };
    // The response has arrived, and a failure of the caller's function must not lose it. The function may be async.
    const failed = (error: unknown): void => {
      console.warn(`@petstore-service/client: onDeprecation failed: ${reasonOf(error)}`);
    };
    new Promise((resolve) => resolve(this.onDeprecation(notice))).catch(failed).catch(() => undefined);
  }
}

/** Where a page of a list begins. */
function cursorOf(page: URL): string | null {
  return page.searchParams.get('cursor');
}

function isPet(body: unknown): boolean {
  return typeof body === 'object' && body !== null && 'id' in body && typeof body.id === 'bigint';
}

function isListOfPets(body: unknown): boolean {
  return Array.isArray(body) && body.every(isPet);
}

function warnOnConsole({ operation, sunset, documentation }: DeprecationNotice): void {
  const until = sunset === undefined ? '' : ` and will be removed on ${sunset.toISOString().slice(0, 10)}`;
  const more = documentation === undefined ? '' : `: ${documentation}`;
  console.warn(`@petstore-service/client: ${operation} is deprecated${until}${more}`);
}
