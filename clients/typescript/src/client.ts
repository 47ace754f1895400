import { checkArgument, PetStoreError } from './errors.js';
import type { components } from './generated/api.js';
import { linkTarget, parseDeprecation, parseHttpDate } from './header-fields.js';
import { requireBigint, writeJson } from './json.js';
import { type Answer, type OperationId, randomId, Transport } from './transport.js';

/** A pet of the catalogue. */
export type Pet = components['schemas']['Pet'];
/** A pet to add. */
export type NewPet = components['schemas']['NewPet'];
/** Availability of a pet. */
export type PetStatus = components['schemas']['PetStatus'];

export interface PetStoreClientOptions {
  /** Address of the service with its version, such as `https://petstore.example/v1`. */
  readonly baseUrl: string;
  /** Sent as `Authorization: Bearer …` to the origin of `baseUrl` and nowhere else. */
  readonly apiKey: string;
  /** Sends the requests, instead of the global `fetch`. */
  readonly fetch?: typeof fetch;
  /** Time limit for one attempt, in ms. Default: 15,000. */
  readonly attemptTimeoutMs?: number;
  /** Largest number of attempts of one call; 1 for no retries. Default: 6. */
  readonly maxAttempts?: number;
  /** Time limit for one call, with all attempts and the waits between them, in ms. Default: 60,000. */
  readonly maxTotalMs?: number;
  /** Called once for each operation that will be removed. Default: a warning on the console. */
  readonly onDeprecation?: (notice: DeprecationNotice) => void;
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
  readonly idempotencyKey?: string;
}

export interface ListPetsOptions extends CallOptions {
  /** Only pets with this availability. */
  readonly status?: PetStatus;
  /** Largest number of pets in a page, 1 to 100. Default of the service: 20. */
  readonly limit?: number;
}

/** Selects the first page of a list, or the page that `next` names. */
export type ListPetsPageOptions = ListPetsOptions | NextPageOptions;

export interface NextPageOptions extends CallOptions {
  /** `next` of the previous page. It includes `status` and `limit`. */
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
  constructor({
    baseUrl,
    apiKey,
    fetch = globalThis.fetch,
    attemptTimeoutMs = 15_000,
    maxAttempts = 6,
    maxTotalMs = 60_000,
    onDeprecation = warnOnConsole,
  }: PetStoreClientOptions) {
    this.baseUrl = checkArgument(() => new URL(baseUrl.replace(/\/*$/, '/')));
    this.onDeprecation = onDeprecation;
    this.transport = new Transport(
      { apiKey, fetch, attemptTimeoutMs, maxAttempts, maxTotalMs },
      ({ operation }, headers) => this.reportDeprecation(operation, headers),
    );
  }

  /** Adds a pet, exactly once however often the request must be sent. */
  async createPet(pet: NewPet, { idempotencyKey = randomId(), signal }: CreatePetOptions = {}): Promise<Pet> {
    const answer = await this.transport.send({
      operation: 'createPet',
      method: 'POST',
      url: new URL('pets', this.baseUrl),
      headers: {
        'content-type': 'application/json',
        'idempotency-key': `"${idempotencyKey.replace(/["\\]/g, '\\$&')}"`,
      },
      body: checkArgument(() => writeJson(pet)),
      expected: [201],
      isBody: isPet,
      signal,
    });
    return answer.body as Pet;
  }

  /** All pets by ascending id, page after page as the caller consumes them. `limit` is the size of a page. */
  async *listPets(options: ListPetsOptions = {}): AsyncGenerator<Pet, void, undefined> {
    let page = await this.listPetsPage(options);
    yield* page.pets;
    while (page.next !== undefined) {
      page = await this.listPetsPage({ next: page.next, signal: options.signal });
      yield* page.pets;
    }
  }

  /** One page of pets. */
  listPetsPage(options?: ListPetsPageOptions): Promise<PetsPage>;
  listPetsPage(options: ListPetsPageOptions & Conditional): Promise<PetsPage | NotModified>;
  async listPetsPage(options: ListPetsPageOptions & Partial<Conditional> = {}): Promise<PetsPage | NotModified> {
    const url = 'next' in options ? this.pageAddress(options.next) : this.firstPageAddress(options);
    const { status, headers, body } = await this.get('listPets', url, isListOfPets, options);
    const etag = headers.get('etag') ?? undefined;
    if (status === 304) return { notModified: true, etag };
    const target = linkTarget(headers.get('link'), 'next');
    const next = target === undefined ? undefined : new URL(target, url).href;
    return { notModified: false, pets: body as Pet[], next, etag };
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
    checkArgument(() => requireBigint('petId', petId));
    const { status, headers, body } = await this.get('getPet', new URL(`pets/${petId}`, this.baseUrl), isPet, options);
    const etag = headers.get('etag') ?? undefined;
    if (status === 304) return { notModified: true, etag };
    return { notModified: false, pet: body as Pet, etag };
  }

  private get(
    operation: OperationId,
    url: URL,
    isBody: (body: unknown) => boolean,
    { ifNoneMatch, signal }: CallOptions & Partial<Conditional>,
  ): Promise<Answer> {
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

  private firstPageAddress({ limit, status }: ListPetsOptions): URL {
    const url = new URL('pets', this.baseUrl);
    if (limit !== undefined) url.searchParams.set('limit', String(limit));
    if (status !== undefined) url.searchParams.set('status', status);
    return url;
  }

  /** @throws PetStoreError `foreign_link` when the API key must not be sent there */
  private pageAddress(next: string): URL {
    const url = checkArgument(() => new URL(next, this.baseUrl));
    if (url.origin !== this.baseUrl.origin) {
      const message =
        `The next page is on ${url.origin}, and baseUrl on ${this.baseUrl.origin}: the API key is not sent there. ` +
        'Use the address that the service has as its PUBLIC_BASE_URL.';
      throw new PetStoreError({ code: 'foreign_link', message });
    }
    return url;
  }

  private reportDeprecation(operation: OperationId, headers: Headers): void {
    const [deprecation, sunset] = [headers.get('deprecation'), headers.get('sunset')];
    if ((deprecation === null && sunset === null) || this.reportedOperations.has(operation)) return;
    this.reportedOperations.add(operation);
    const link = headers.get('link');
    this.onDeprecation({
      operation,
      deprecation: parseDeprecation(deprecation),
      sunset: parseHttpDate(sunset),
      successor: linkTarget(link, 'successor-version'),
      documentation: linkTarget(link, 'deprecation'),
    });
  }
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
