import type { PGlite } from '@electric-sql/pglite';

/** The status of the exception by which PGlite leaves its main loop after an error of PostgreSQL. */
const ERROR_OF_POSTGRES = 100;

interface EngineModule {
  /** Carries out one message. */
  _PostgresMainLoopOnce(this: void): void;
  /** Ends the module without a checkpoint: closes its files and stops its timers. */
  _emscripten_force_exit(this: void, code: number): never;
}

const moduleOf = (engine: PGlite): EngineModule => engine.Module as unknown as EngineModule;

/**
 * Makes calls of an engine throw what ended it, such as a RangeError when a statement has used up the stack. PGlite would
 * catch it and carry out the next message, although nothing is known about the engine's memory any more: a COMMIT that
 * follows would keep half a statement.
 *
 * @throws Error when PGlite differs from the known versions
 */
export function surfaceCrashes(engine: PGlite): void {
  const module = moduleOf(engine);
  const carryOut = module._PostgresMainLoopOnce;
  if (typeof carryOut !== 'function' || typeof module._emscripten_force_exit !== 'function')
    throw new Error('this version of @electric-sql/pglite is not supported; install the one of package-lock.json');
  module._PostgresMainLoopOnce = () => {
    try {
      carryOut();
    } catch (error) {
      if ((error as { status?: unknown } | undefined)?.status === ERROR_OF_POSTGRES) throw error;
      throw unreadable(error);
    }
  };
}

/** An error that throws `cause` when its status is read, as PGlite does with every error that it catches. */
function unreadable(cause: unknown): Error {
  return Object.defineProperty(new Error('The engine has ended', { cause }), 'status', {
    get: () => {
      throw cause;
    },
  });
}

/** Releases the files, timers and memory of an engine that has crashed. Writes nothing: its memory may be damaged. */
export function abandon(engine: PGlite): void {
  try {
    moduleOf(engine)._emscripten_force_exit(1);
  } catch {
    // It always throws: the end of a program never returns.
  }
}
