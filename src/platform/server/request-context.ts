import { randomBytes } from 'node:crypto';

/** What the platform knows of one request beside the message itself: for its log line, its metrics and its answer. */
export class RequestContext {
  /** When the header section had arrived, in ms of `performance.now()`. */
  readonly startedAt = performance.now();
  /** When the whole answer was handed to the socket; later than that only a lingering close can happen. */
  answeredAt: number | undefined;
  /** The handler's name, which is the operationId; undefined when no route matched. */
  operation: string | undefined;
  /** Whether the operation is announced to end. */
  isDeprecated = false;
  /** The name of the client whose API key was sent; undefined before authentication and on public routes. */
  client: string | undefined;
  /** Its id, under the same conditions. */
  clientId: bigint | undefined;
  /** `code` of the Error body; undefined when the answer is none. */
  errorCode: string | undefined;
  /** The client waits for `100 Continue` before it sends the body (RFC 9110, section 10.1.1). */
  expectsContinue = false;
  /** Whether the request counts among those in flight. */
  isInFlight = false;
  /** Whether it was refused because too many others are in flight. */
  isRefused = false;
  /** Whether its answer was cut because the client did not take it. Node holds such an answer for sent. */
  isCut = false;
  /** Whether its response is over: sent, or cut off. */
  isOver = false;
  private body: Promise<unknown> | undefined;

  constructor(
    /** The client's `X-Request-Id` if it is well-formed, else a new one. */
    readonly requestId: string,
  ) {}

  /** Reads the body at the first call; a body can be read only once, so later calls share the result. */
  readBodyOnce(read: () => Promise<unknown>): Promise<unknown> {
    return (this.body ??= read());
  }
}

declare global {
  // eslint-disable-next-line @typescript-eslint/no-namespace -- the way Express offers to extend its request
  namespace Express {
    interface Request {
      /** Set by the platform's HTTP server before anything else sees the request. */
      context: RequestContext;
    }
  }
}

/** The header field that carries the request id, both ways. */
export const REQUEST_ID_HEADER = 'X-Request-Id';

const WELL_FORMED_REQUEST_ID = /^[A-Za-z0-9._-]{1,128}$/;

/** The id to use for a request that was sent with this `X-Request-Id`. */
export function requestIdFrom(sent: string | string[] | undefined): string {
  return typeof sent === 'string' && WELL_FORMED_REQUEST_ID.test(sent) ? sent : newRequestId();
}

// One call of the random generator serves many requests: 96 random bits each, 128 ids at a time.
const ID_BYTES = 12;
let pool = Buffer.alloc(0);
let offset = 0;

/** A new request id: 16 characters of base64url, 96 random bits. */
export function newRequestId(): string {
  if (offset >= pool.length) {
    pool = randomBytes(ID_BYTES * 128);
    offset = 0;
  }
  offset += ID_BYTES;
  return pool.toString('base64url', offset - ID_BYTES, offset);
}
