/** Limits of one logged value, including its members and causes. */
const MAX_VALUES = 100;
const MAX_CHARACTERS = 32_768;

const MAX_DEPTH = 5;

const CUT = '…';

/** The members of an error that are logged. */
export interface LoggableError {
  readonly type: string;
  readonly message: string;
  readonly stack?: string | undefined;
  readonly code?: unknown;
  /** The constraint of PostgreSQL that refused a row. */
  readonly constraint?: unknown;
  readonly cause?: unknown;
  /** The errors of an AggregateError. */
  readonly errors?: unknown;
}

/**
 * Converts a value for `JSON.stringify`, with bounded size. Of an Error only the members of `LoggableError` are kept: others have values of
 * rows and statements, which are the client's data. Quoted parts of messages of SQLSTATE class 22 (data exceptions) are removed.
 */
export function loggable(value: unknown): unknown {
  try {
    return new Reader().read(value, 0);
  } catch {
    // A getter or proxy of the value has thrown.
    return value instanceof Error ? { type: 'Error', message: CUT } : CUT;
  }
}

class Reader {
  private values = MAX_VALUES;
  private characters = MAX_CHARACTERS;

  read(value: unknown, depth: number): unknown {
    if (typeof value === 'string') return this.readText(value);
    if (typeof value === 'bigint' || typeof value === 'symbol') return String(value);
    if (typeof value !== 'object' || value === null) return value;
    if (value instanceof Date) return value;
    if (depth === MAX_DEPTH || ArrayBuffer.isView(value)) return CUT;
    if (value instanceof Error) return this.readError(value, depth);
    if (Array.isArray(value)) return this.take(value as unknown[]).map((item) => this.read(item, depth + 1));
    const members = this.take(Object.entries(value));
    return Object.fromEntries(members.map(([name, member]) => [name, this.read(member, depth + 1)]));
  }

  private readError(error: Error, depth: number): LoggableError {
    const { name, message, stack, code, constraint, cause, errors } = error as Error &
      Partial<Record<'code' | 'constraint' | 'errors', unknown>>;
    // `invalid input syntax for type integer: "secret"` and the like quote what the client sent.
    const isOfData = typeof code === 'string' && /^22...$/.test(code);
    const shown = isOfData ? message.replace(/"[^]*"/, `"${CUT}"`) : message;
    return {
      type: error.constructor.name || name,
      message: this.readText(shown),
      stack: typeof stack === 'string' ? this.readText(stack.replace(message, () => shown)) : undefined,
      code: this.read(code, depth + 1),
      constraint: this.read(constraint, depth + 1),
      cause: this.read(cause, depth + 1),
      errors: this.read(errors, depth + 1),
    };
  }

  private readText(text: string): string {
    const start = text.slice(0, this.characters);
    this.characters -= start.length;
    return start.length < text.length ? `${start}${CUT}` : start;
  }

  private take<T>(items: readonly T[]): T[] {
    const taken = items.slice(0, this.values);
    this.values -= taken.length;
    return taken;
  }
}
